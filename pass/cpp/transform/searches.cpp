// Keeps LLVM from peeling searches, and from making selects of them where their tables may be larger than the caches.
//
// The next load of a binary search depends on a select by the last one. In an innermost loop, x86 code generation makes a
// branch of such a select where it is on the critical path, which may be predicted. LLVM peels loops with few
// iterations by the profile; code generation leaves the selects of peeled iterations, and each waits for the load before.
// In the recorded program, the select has no blocks. Unless a jump that code generation made of it was often mispredicted,
// the loop stays what it is without a profile.
//
// A select that the profile calls unpredictable stays one, in a loop as well. But where tables are larger than the
// caches, a branch is better even if half of its predictions are wrong: the next load begins before the last one ends.
// A search that halves its table has 2^n elements for n iterations.
//
// The index of the smallest of some values is no such search: what the next iteration reads there, this one has read.
// Peeled iterations keep it in a register, and wait for no load.
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

// Follows integer casts: an index is often narrower where it is selected than where it is used.
static const Value *withoutCasts(const Value *V) {
  while (isa<SExtInst, ZExtInst, TruncInst>(V))
    V = cast<CastInst>(V)->getOperand(0);
  return V;
}

// Whether `There` becomes `Here` if `Old` is replaced by `New`.
static bool isReplaced(const Value *There, const Value *Here, const Value *Old, const Value *New, unsigned Depth = 0) {
  constexpr unsigned MaxDepth = 8;
  There = withoutCasts(There);
  Here = withoutCasts(Here);
  if (There == Old)
    return Here == withoutCasts(New);
  if (There == Here)
    return true;
  const auto *A = dyn_cast<Instruction>(There), *B = dyn_cast<Instruction>(Here);
  return Depth < MaxDepth && A && B && !isa<PHINode>(A) && A->isSameOperationAs(B) &&
         all_of(zip(A->operand_values(), B->operand_values()), [&](auto Operands) {
           return isReplaced(std::get<0>(Operands), std::get<1>(Operands), Old, New, Depth + 1);
         });
}

// Whether a select chooses between a place and the one chosen before, comparing what is at both.
static bool comparesPlaces(const SelectInst &Select, const Loop &L) {
  const auto *Compare = dyn_cast<CmpInst>(Select.getCondition());
  if (!Compare)
    return false;
  auto *Last = dyn_cast<PHINode>(Select.getTrueValue());
  const Value *New = Select.getFalseValue();
  if (!Last || Last->getParent() != L.getHeader()) {
    Last = dyn_cast<PHINode>(Select.getFalseValue());
    New = Select.getTrueValue();
  }
  if (!Last || Last->getParent() != L.getHeader() || !is_contained(Last->incoming_values(), &Select))
    return false;
  const Value *Left = Compare->getOperand(0), *Right = Compare->getOperand(1);
  return isReplaced(Left, Right, Last, New) || isReplaced(Right, Left, Last, New);
}

// Whether an iteration waits for a load, or a call, because a select decides what it reads.
static bool selectsAddress(const SelectInst &Select, const Loop &L) {
  if (comparesPlaces(Select, L))
    return false;
  SmallPtrSet<const Value *, 4> Decided;
  pleach::dependentHeaderPhis(Select, L, Decided);
  PleachLatencies Loads = {};
  Loads.Load = Loads.Call = 1;
  pleach::ChainsFrom Chains(Decided, &L, Loads);
  return Chains.to(Select.getCondition()) >= 1 && Chains.to(Select.getTrueValue()) < 1 &&
         Chains.to(Select.getFalseValue()) < 1;
}

void pleachLeaveSearches(Function &F, FunctionAnalysisManager &FAM, const PleachLimits &Limits) {
  if (!F.getEntryCount())
    return;
  for (Loop *L : FAM.getResult<LoopAnalysis>(F).getLoopsInPreorder()) {
    if (!L->isInnermost() || getOptionalIntLoopAttribute(L, PeeledCount))
      continue;
    const auto Iterations = getLoopEstimatedTripCount(L);
    const bool MayBeLarge = !Iterations || *Iterations > Limits.MaxSearchIterations;
    bool IsSearch = false;
    for (BasicBlock *BB : L->blocks())
      for (Instruction &I : *BB)
        if (pleach::couldBeBranch(I) && selectsAddress(cast<SelectInst>(I), *L)) {
          IsSearch = true;
          if (MayBeLarge)
            I.setMetadata(LLVMContext::MD_unpredictable, nullptr);
        }
    if (IsSearch)
      addStringMetadataToLoop(L, PeeledCount, MaxPeeled);
  }
}
