// Finds what a mistyped word was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::host {

/// The known word with the least edit distance (a swap of neighbours counts one); empty when none is near enough to be meant.
std::string nearest_word(std::string_view word, std::span<const std::string> known);

/// Ends a message about an unknown word: "; did you mean 'llvm'? known: llvm, reference" (the list only while it is short).
std::string suggestion_text(std::string_view word, std::span<const std::string> known);

/// Ends a message about a path that is not there: "; did you mean '/home/me/plugins'?", empty when nothing beside it has a like name.
std::string nearest_path_text(const std::string& path);

/// Joins words with ", ", each in quotes of the given character (none for '\0').
std::string joined(std::span<const std::string> words, char quote = '\0');

}  // namespace tenon::host
