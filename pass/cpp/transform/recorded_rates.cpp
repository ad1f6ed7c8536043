// Keeps LLVM from making selects of branches whose misprediction rate was recorded: if-conversion decides about these.
//
// The last SimplifyCFG, which runs before if-conversion, executes both ways of unpredictable branches up to the cost of a
// misprediction. It does not ask how often they are mispredicted, whether iterations wait for each other's selects, or
// whether code generation makes a branch of the select again.
#include "pleach.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

static constexpr char Aside[] = "pleach.unpredictable";

// Moves the rates of branches from one kind of metadata to another.
static void move(Function &F, unsigned From, unsigned To) {
  for (BasicBlock &BB : F) {
    auto *Branch = dyn_cast<BranchInst>(BB.getTerminator());
    MDNode *Rate = Branch ? Branch->getMetadata(From) : nullptr;
    // The programmer's own marks have no rate.
    if (!Rate || Rate->getNumOperands() != 1)
      continue;
    Branch->setMetadata(From, nullptr);
    Branch->setMetadata(To, Rate);
  }
}

void pleachSetRatesAside(Function &F) {
  move(F, LLVMContext::MD_unpredictable, F.getContext().getMDKindID(Aside));
}

extern "C" {

// Undoes it, where the branches still are.
void pleach_put_rates_back(LLVMValueRef V) {
  Function &F = *unwrap<Function>(V);
  move(F, F.getContext().getMDKindID(Aside), LLVMContext::MD_unpredictable);
}

} // extern "C"
