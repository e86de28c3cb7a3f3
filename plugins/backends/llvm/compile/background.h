// Work that can wait: what makes compiled code faster while it already runs.
#pragma once

#include <functional>

namespace tenon::llvm_backend {

/// Runs the job on a thread of low priority, after those that were added before. There is one such thread a process, and only while it has
/// work. A job that throws is dropped. Jobs that have not begun when the process exits or forks (in the child) are dropped.
void run_in_background(std::function<void()> job);

/// Returns when all jobs have run that were added before this call.
void wait_for_background();

}  // namespace tenon::llvm_backend
