// Turns selects on loop-carried chains into branches. The Rust half chooses the selects.
//
// A select waits for its condition; a branch can be predicted. If the next iteration of a loop depends on the selected
// value, as in the search of a tree, a select makes each iteration wait for the previous one's comparison.
#include "analysis/chains.h"
#include "pleach.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace {

using pleach::couldBeBranch;

// The selects of a block with the condition of `First`, the first of them, that could all be computed at its position.
SmallVector<SelectInst *, 4> group(SelectInst &First) {
  SmallVector<SelectInst *, 4> Group{&First};
  SmallPtrSet<const Value *, 16> After{&First};
  for (Instruction *I = First.getNextNode(); I; I = I->getNextNode()) {
    auto *Select = dyn_cast<SelectInst>(I);
    if (Select && Select->getCondition() == First.getCondition() && couldBeBranch(*I) &&
        !After.contains(Select->getTrueValue()) && !After.contains(Select->getFalseValue()))
      Group.push_back(Select);
    After.insert(I);
  }
  return Group;
}

// Cycles from φs of a loop's header to their values in the next iteration.
double ofIteration(const Loop &L, const SmallPtrSetImpl<const Value *> &Phis, pleach::ChainsFrom &Chains) {
  double Cycles = 0;
  for (const Value *V : Phis) {
    const auto *Phi = cast<PHINode>(V);
    for (unsigned I = 0; I < Phi->getNumIncomingValues(); ++I)
      if (L.contains(Phi->getIncomingBlock(I)))
        Cycles = std::max(Cycles, Chains.to(Phi->getIncomingValue(I)));
  }
  return Cycles;
}

} // namespace

extern "C" {

// Finds the groups of selects on loop-carried chains of a function; writes at most `Capacity`.
size_t pleach_find_loop_carried_selects(LLVMValueRef V, const PleachLatencies *Latencies,
                                        PleachLoopCarriedSelect *Found, size_t Capacity) {
  Function &F = *unwrap<Function>(V);
  if (!F.getEntryCount() || F.hasOptSize() || F.hasOptNone())
    return 0;
  DominatorTree DT(F);
  LoopInfo Loops(DT);
  size_t Count = 0;
  for (BasicBlock &BB : F) {
    const Loop *L = Loops.getLoopFor(&BB);
    if (!L || L->getHeader()->isEHPad())
      continue;
    SmallPtrSet<const Value *, 8> Conditions;
    for (Instruction &I : BB) {
      if (Count == Capacity)
        return Count;
      if (!couldBeBranch(I) || !Conditions.insert(cast<SelectInst>(I).getCondition()).second)
        continue;
      auto &First = cast<SelectInst>(I);
      SmallPtrSet<const Value *, 4> Decided;
      SmallVector<SelectInst *, 4> Group = group(First);
      for (SelectInst *Select : Group)
        pleach::dependentHeaderPhis(*Select, *L, Decided);
      pleach::ChainsFrom Waiting(Decided, L, *Latencies), Predicted(Decided, L, *Latencies, Group);
      const double Condition = Waiting.to(First.getCondition());
      if (Condition < 0)
        continue;
      const PleachLoopCarriedSelect Selects = {wrap(&First), Condition, ofIteration(*L, Decided, Waiting),
                                               ofIteration(*L, Decided, Predicted)};
      if (Waiting.areComplete() && Predicted.areComplete())
        Found[Count++] = Selects;
    }
  }
  return Count;
}

// Turns the group of a select into one branch.
void pleach_select_to_branch(LLVMValueRef V) {
  auto &First = *cast<SelectInst>(unwrap<Instruction>(V));
  SmallVector<SelectInst *, 4> Group = group(First);
  IRBuilder<> Builder(&First);
  Value *Condition = First.getCondition();
  if (!isGuaranteedNotToBeUndefOrPoison(Condition))
    Condition = Builder.CreateFreeze(Condition);
  BasicBlock *Before = First.getParent();
  MDNode *Weights = First.getMetadata(LLVMContext::MD_prof);
  Instruction *End = SplitBlockAndInsertIfThen(Condition, First.getIterator(),
                                               /*Unreachable=*/false, Weights);
  BasicBlock *Taken = End->getParent(), *After = Taken->getSingleSuccessor();
  for (SelectInst *Select : Group) {
    auto *Phi = PHINode::Create(Select->getType(), 2, "", After->getFirstNonPHIIt());
    Phi->takeName(Select);
    Phi->setDebugLoc(Select->getDebugLoc());
    Phi->addIncoming(Select->getTrueValue(), Taken);
    Phi->addIncoming(Select->getFalseValue(), Before);
    Select->replaceAllUsesWith(Phi);
    Select->eraseFromParent();
  }
}

} // extern "C"
