// Keeps LLVM from peeling searches.
//
// The next load of a binary search depends on a select by the last one. In an innermost loop, x86 code generation makes a
// branch of such a select where it is on the critical path, which may be predicted. LLVM peels loops with few
// iterations by the profile; code generation leaves the selects of peeled iterations, and each waits for the load before.
// Where the search goes cannot be known from the profile: in the recorded program, the select has no blocks. So the loop
// stays what it is without a profile.
#include "analysis/chains.h"
#include "pleach.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

// LLVM's metadata of loops that it has peeled, and the number of iterations that it peels at most.
static constexpr char PeeledCount[] = "llvm.loop.peeled.count";
static constexpr unsigned MaxPeeled = 7;

// Whether an iteration waits for a load, or a call, because a select decides what it reads.
static bool selectsAddress(const SelectInst &Select, const Loop &L) {
  SmallPtrSet<const Value *, 4> Decided;
  pleach::dependentHeaderPhis(Select, L, Decided);
  PleachLatencies Loads = {};
  Loads.Load = Loads.Call = 1;
  pleach::ChainsFrom Chains(Decided, &L, Loads);
  return Chains.to(Select.getCondition()) >= 1 && Chains.to(Select.getTrueValue()) < 1 &&
         Chains.to(Select.getFalseValue()) < 1;
}

void pleachLeaveSearches(Function &F, FunctionAnalysisManager &FAM) {
  if (!F.getEntryCount())
    return;
  for (Loop *L : FAM.getResult<LoopAnalysis>(F).getLoopsInPreorder()) {
    if (!L->isInnermost() || getOptionalIntLoopAttribute(L, PeeledCount))
      continue;
    const bool IsSearch = any_of(L->blocks(), [&](const BasicBlock *BB) {
      return any_of(*BB, [&](const Instruction &I) {
        return pleach::couldBeBranch(I) && selectsAddress(cast<SelectInst>(I), *L);
      });
    });
    if (IsSearch)
      addStringMetadataToLoop(L, PeeledCount, MaxPeeled);
  }
}
