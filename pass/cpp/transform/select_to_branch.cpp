// Turns selects on loop-carried chains into branches. The Rust half chooses the selects.
//
// A select waits for its condition; a branch can be predicted. If the next iteration of a loop depends on the selected
// value, as in the search of a tree, a select makes each iteration wait for the previous one's comparison.
#include "pleach.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace {

double latency(const Instruction &I, const PleachLatencies &Of) {
  if (isa<LoadInst>(I))
    return Of.Load;
  if (I.isIntDivRem())
    return Of.Division;
  if (isa<PHINode>(I) || isa<CastInst>(I) || isa<FreezeInst>(I) || isa<ExtractValueInst>(I) ||
      isa<InsertValueInst>(I))
    return Of.Move;
  if (isa<IntrinsicInst>(I))
    return Of.Intrinsic;
  if (isa<CallBase>(I))
    return Of.Call;
  if (I.getType()->isFPOrFPVectorTy() || I.getOpcode() == Instruction::Mul)
    return Of.Multiply;
  return Of.Other;
}

// Whether a select could be a branch. Those that the programmer marked unpredictable remain selects.
bool isScalarSelect(const Instruction &I) {
  auto *Select = dyn_cast<SelectInst>(&I);
  if (!Select || !Select->getCondition()->getType()->isIntegerTy(1) ||
      !isa<Instruction>(Select->getCondition()))
    return false;
  const MDNode *Unpredictable = Select->getMetadata(LLVMContext::MD_unpredictable);
  using namespace PatternMatch;
  return !(Unpredictable && Unpredictable->getNumOperands() == 0) &&
         !match(Select, m_LogicalAnd()) && !match(Select, m_LogicalOr()) &&
         !match(Select, m_MaxOrMin(m_Value(), m_Value()));
}

// Dependences within one iteration of a loop.
struct Iteration {
  Iteration(const Loop &L, const PleachLatencies &Latencies) : L(L), Latencies(Latencies) {}

  const Loop &L;
  const PleachLatencies &Latencies;
  // The φs of the header that depend on a group of selects.
  SmallPtrSet<const Value *, 4> Decided;
  // The longest chain from one of these φs, in cycles; -1 if there is none.
  DenseMap<const Instruction *, double> Longest;

  // Collects the header φs that depend on a select.
  void follow(const Instruction &From) {
    SmallPtrSet<const Instruction *, 32> Seen;
    SmallVector<const Instruction *, 16> Work{&From};
    while (!Work.empty() && Seen.size() < 256) {
      const Instruction *I = Work.pop_back_val();
      for (const User *U : I->users()) {
        auto *Next = dyn_cast<Instruction>(U);
        if (!Next || !L.contains(Next))
          continue;
        if (isa<PHINode>(Next) && Next->getParent() == L.getHeader())
          Decided.insert(Next);
        else if (Seen.insert(Next).second)
          Work.push_back(Next);
      }
    }
  }

  double longestTo(const Value *V, unsigned Depth = 0) {
    if (Decided.contains(V))
      return 0;
    auto *I = dyn_cast<Instruction>(V);
    if (!I || !L.contains(I) || Depth > 64 ||
        (isa<PHINode>(I) && I->getParent() == L.getHeader()))
      return -1;
    auto [Known, IsNew] = Longest.try_emplace(I, -1);
    if (!IsNew)
      return Known->second;
    double Max = -1;
    for (const Value *Operand : I->operands())
      Max = std::max(Max, longestTo(Operand, Depth + 1));
    return Longest[I] = Max < 0 ? -1 : Max + latency(*I, Latencies);
  }
};

// The selects of a block with the condition of `First`, the first of them, that could all be computed at its position.
SmallVector<SelectInst *, 4> group(SelectInst &First) {
  SmallVector<SelectInst *, 4> Group{&First};
  SmallPtrSet<const Value *, 16> After{&First};
  for (Instruction *I = First.getNextNode(); I; I = I->getNextNode()) {
    auto *Select = dyn_cast<SelectInst>(I);
    if (Select && Select->getCondition() == First.getCondition() && isScalarSelect(*I) &&
        !After.contains(Select->getTrueValue()) && !After.contains(Select->getFalseValue()))
      Group.push_back(Select);
    After.insert(I);
  }
  return Group;
}

} // namespace

extern "C" {

// Finds the groups of selects on loop-carried chains of a function; writes at most `Capacity`.
size_t pleach_recurrences(LLVMValueRef V, const PleachLatencies *Latencies, PleachRecurrence *Found, size_t Capacity) {
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
      if (!isScalarSelect(I) || !Conditions.insert(cast<SelectInst>(I).getCondition()).second)
        continue;
      auto &First = cast<SelectInst>(I);
      Iteration T(*L, *Latencies);
      SmallVector<SelectInst *, 4> Group = group(First);
      for (SelectInst *Select : Group)
        T.follow(*Select);
      double Condition = T.longestTo(First.getCondition()), Values = 0;
      for (SelectInst *Select : Group)
        Values = std::max({Values, T.longestTo(Select->getTrueValue()),
                           T.longestTo(Select->getFalseValue())});
      if (Condition >= 0)
        Found[Count++] = {wrap(&First), Condition, Values};
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
