// What needs_neighbour needs.
extern "C" __attribute__((visibility("default"))) int neighbour_answer() { return 42; }
