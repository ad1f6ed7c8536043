// Selects that a loop waits for, turned back into branches. Which ones that pays for is decided in
// Rust.
//
// A select needs its condition, a branch only guesses it. Where what is selected decides what the
// next turn of a loop works on, as a search tree's child does, a select makes each turn wait for
// the comparison of the one before.
#include "shim.h"
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

// The order is that of `Recurrence` in src/ffi.rs.
struct PleachRecurrence {
  LLVMValueRef Select; // the first of those that have its condition, in its block
  double Condition;    // cycles from what the turn before selected to the condition
  double Values;       // and to what is selected now
};

namespace {

// Cycles from an instruction's operands to its result, on common processors, where caches hit. A
// call is of a function of few instructions.
double latency(const Instruction &I) {
  if (isa<LoadInst>(I))
    return 5;
  if (I.isIntDivRem())
    return 20;
  if (isa<PHINode>(I) || isa<CastInst>(I) || isa<FreezeInst>(I) || isa<ExtractValueInst>(I) ||
      isa<InsertValueInst>(I))
    return 0;
  if (isa<IntrinsicInst>(I))
    return 2;
  if (isa<CallBase>(I))
    return 20;
  if (I.getType()->isFPOrFPVectorTy() || I.getOpcode() == Instruction::Mul)
    return 4;
  return 1;
}

// What a branch could do. Where the programmer called it unpredictable, it is to be none.
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

// What depends on what within one turn of a loop.
struct Turn {
  explicit Turn(const Loop &L) : L(L) {}

  const Loop &L;
  // The φs of the header that a group of selects decides.
  SmallPtrSet<const Value *, 4> Decided;
  // Longest way from one of those; -1 where there is none.
  DenseMap<const Instruction *, double> Longest;

  // What a select decides, for the next turn.
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
    double Most = -1;
    for (const Value *Operand : I->operands())
      Most = std::max(Most, longestTo(Operand, Depth + 1));
    return Longest[I] = Most < 0 ? -1 : Most + latency(*I);
  }
};

// Selects of a block with the same condition as `First`, the first of them, which could all stand
// at its place.
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

// Where an access is, as far as it is a constant away from something.
std::pair<const Value *, int64_t> place(const Value *Pointer, const DataLayout &DL) {
  APInt Offset(DL.getIndexTypeSizeInBits(Pointer->getType()), 0);
  const Value *Base = Pointer->stripAndAccumulateConstantOffsets(DL, Offset, /*AllowNonInbounds=*/true);
  return {Base, Offset.getSExtValue()};
}

// Longest way to a condition from loads of what a branch's arms store: what they store is read again where the code comes by again, in a loop
// around it, or around calls of its function. -1 where there is none.
double longestFromStores(const BranchInst &Branch) {
  const BasicBlock *BB = Branch.getParent();
  const DataLayout &DL = BB->getDataLayout();
  SmallVector<std::pair<const Value *, int64_t>, 8> Stored;
  for (const BasicBlock *Arm : Branch.successors())
    if (Arm->getSinglePredecessor() == BB)
      for (const Instruction &I : *Arm)
        if (auto *Store = dyn_cast<StoreInst>(&I))
          Stored.push_back(place(Store->getPointerOperand(), DL));
  if (Stored.empty())
    return -1;
  DenseMap<const Instruction *, double> Longest;
  auto To = [&](auto &&To, const Value *V, unsigned Depth) -> double {
    auto *I = dyn_cast<Instruction>(V);
    if (!I || Depth > 64)
      return -1;
    auto [Known, IsNew] = Longest.try_emplace(I, -1);
    if (!IsNew)
      return Known->second;
    double Most = -1;
    if (auto *Load = dyn_cast<LoadInst>(I);
        Load && llvm::is_contained(Stored, place(Load->getPointerOperand(), DL)))
      Most = 0;
    for (const Value *Operand : I->operands())
      Most = std::max(Most, To(To, Operand, Depth + 1));
    return Longest[I] = Most < 0 ? -1 : Most + latency(*I);
  };
  return To(To, Branch.getCondition(), 0);
}

} // namespace

extern "C" {

// What a branch's condition waits for of what the branch decided before, and what the values do that it chooses from, in cycles. False where it does
// not depend on that.
bool pleach_carried(LLVMValueRef V, double *Condition, double *Values) {
  auto *Branch = dyn_cast<BranchInst>(unwrap<Instruction>(V));
  if (!Branch || !Branch->isConditional())
    return false;
  *Values = 0;
  *Condition = longestFromStores(*Branch);
  if (*Condition >= 0)
    return true;
  BasicBlock *BB = Branch->getParent();
  DominatorTree DT(*BB->getParent());
  LoopInfo Loops(DT);
  const Loop *L = Loops.getLoopFor(BB);
  if (!L)
    return false;
  // The φs where the ways meet.
  Turn T(*L);
  SmallVector<const PHINode *, 8> Chosen;
  for (BasicBlock *Arm : Branch->successors()) {
    BasicBlock *Join = Arm->getSinglePredecessor() == BB ? Arm->getSingleSuccessor() : Arm;
    if (!Join || !L->contains(Join))
      continue;
    for (const PHINode &Phi : Join->phis()) {
      Chosen.push_back(&Phi);
      if (Join == L->getHeader())
        T.Decided.insert(&Phi);
      else
        T.follow(Phi);
    }
  }
  *Condition = T.longestTo(Branch->getCondition());
  for (const PHINode *Phi : Chosen)
    for (const Value *In : Phi->incoming_values())
      *Values = std::max(*Values, T.longestTo(In));
  return *Condition >= 0;
}

// The groups of selects of a function that decide what the next turn of their loop works on: at
// most `Most` are written.
size_t pleach_recurrences(LLVMValueRef V, PleachRecurrence *Found, size_t Most) {
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
      if (Count == Most)
        return Count;
      if (!isScalarSelect(I) || !Conditions.insert(cast<SelectInst>(I).getCondition()).second)
        continue;
      auto &First = cast<SelectInst>(I);
      Turn T(*L);
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

// Makes a branch of the selects that have a select's condition, in its block.
void pleach_branch(LLVMValueRef V) {
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
