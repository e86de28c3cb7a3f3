// What tests ask of the driver that is none.
#pragma once

#include <cstddef>

extern "C" {
/// Kernels that have been launched so far, each of which took 2 microseconds by the events of this card, and modules that are loaded now.
std::size_t fake_cuda_launches();
std::size_t fake_cuda_modules();
/// The texts of the modules that were loaded since this was asked last.
const char* fake_cuda_texts();
/// Graphs that have been launched so far, and graphs and executable graphs that are there now.
std::size_t fake_cuda_graph_launches();
std::size_t fake_cuda_graphs();
/// How often a node of an executable graph has been set.
std::size_t fake_cuda_set_nodes();
/// Nodes on the longest path through the graph that was made executable last.
std::size_t fake_cuda_longest_path();
/// Launches of graphs, refused, in which nodes that no edge orders write and touch the same memory.
std::size_t fake_cuda_hazards();
/// Whether streams say from now on that they are being captured.
void fake_cuda_capture(bool on);
/// Blocks of memory that are allocated now.
std::size_t fake_cuda_blocks();
/// The most bytes that were allocated at a time since this was asked last, beyond those that are now.
std::size_t fake_cuda_most_bytes();
/// What was wrong with the last call that failed; empty where none has.
const char* fake_cuda_complaint();
/// The n-th call from now on of a function that allocates, copies, loads or launches fails with that code. Negative: none does.
void fake_cuda_fail(int n, int code);
/// Likewise of the function of that name, whatever it does. Where the failure `stays`, all that allocate, copy, load or launch fail from then on.
void fake_cuda_fail_in(const char* function, int n, int code, bool stays);
/// How often the failure that was asked for last has come.
std::size_t fake_cuda_failures();
}
