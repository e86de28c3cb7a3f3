// Which fields a struct of the contract has: structs grow at their end, and `struct_size` says how far the filler's reaches.
#pragma once

#include <cstddef>
#include <type_traits>

/// The least struct_size of a `Struct` that has `field`.
#define TENON_SIZE_THROUGH(Struct, field) (offsetof(Struct, field) + sizeof(Struct::field))

/// True when the struct, as its filler knew it, has the field.
#define TENON_COVERS(pointer, field) ((pointer)->struct_size >= TENON_SIZE_THROUGH(std::remove_cvref_t<decltype(*(pointer))>, field))
