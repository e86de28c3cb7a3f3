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

}  // namespace ask
}  // namespace tenon::ops
