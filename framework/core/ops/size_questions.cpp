#include "core/ops/size_questions.h"

#include <utility>

namespace tenon::ops {
namespace {

thread_local SizeQuestions* t_questions = nullptr;

}  // namespace

SizeQuestions::~SizeQuestions() = default;

AskingSizes::AskingSizes(SizeQuestions* questions) : before_(std::exchange(t_questions, questions)) {}
AskingSizes::~AskingSizes() { t_questions = before_; }

namespace ask {

void equal(const ir::Dim& a, const ir::Dim& b) {
  if (t_questions) t_questions->equal(a, b);
}
bool is_same(const ir::Dim& size, const ir::Dim& other) { return t_questions && t_questions->is_same(size, other); }
void not_negative(const ir::Dim& dim) {
  if (t_questions) t_questions->not_negative(dim);
}
void clamps(const ir::Dim& dim) {
  if (t_questions) t_questions->clamps(dim);
}
void divisible(const ir::Dim& dim, const ir::Dim& by) {
  if (t_questions) t_questions->divisible(dim, by);
}
void constant(const ir::Dim& dim) {
  if (t_questions) t_questions->constant(dim);
}
void taken_not_negative(const ir::Dim& dim) {
  if (t_questions) t_questions->taken_not_negative(dim);
}
bool is_zero(const ir::Dim& dim) { return dim.is_constant() ? dim.constant() == 0 : t_questions && t_questions->is_zero(dim); }
bool is_within(const ir::Dim& dim, std::pair<std::int64_t, std::int64_t> range) { return !t_questions || t_questions->is_within(dim, range.first, range.second); }
bool keeps_sign_open(const ir::Dim& dim) { return !dim.is_constant() && t_questions && t_questions->keeps_sign_open(dim); }

}  // namespace ask
}  // namespace tenon::ops
