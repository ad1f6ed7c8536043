// Makes signed divisions unsigned where the dividend is a loop's value that is never negative.
//
// A signed division by a power of two takes four instructions that wait for each other, an unsigned one takes one.
// LLVM's range analysis finds most dividends that are not negative, but not that of a loop which divides before it
// compares, as `std::push_heap` does: `parent = (hole - 1) / 2; while (hole > top && …)`. Without a profile, such a
// function is simplified before `top` is known, in a form that range analysis understands; where small callees are
// inlined first, it is not.
//
// The proof is by induction: the value is not negative where the loop is entered, and if it is not negative in one
// iteration and the loop goes on, it is not negative in the next.
#include "pleach.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

// The values that V can have while `Known` is in `Range`.
static ConstantRange rangeOf(const Value *V, const Value *Known, const ConstantRange &Range, unsigned Depth = 0) {
  constexpr unsigned MaxDepth = 6;
  const unsigned Bits = V->getType()->getIntegerBitWidth();
  if (V == Known)
    return Range;
  if (const auto *C = dyn_cast<ConstantInt>(V))
    return ConstantRange(C->getValue());
  const auto *Operation = dyn_cast<BinaryOperator>(V);
  if (!Operation || Depth == MaxDepth)
    return ConstantRange::getFull(Bits);
  const ConstantRange Left = rangeOf(Operation->getOperand(0), Known, Range, Depth + 1);
  const ConstantRange Right = rangeOf(Operation->getOperand(1), Known, Range, Depth + 1);
  if (const auto *Overflowing = dyn_cast<OverflowingBinaryOperator>(Operation))
    return Left.overflowingBinaryOp(Operation->getOpcode(), Right, Overflowing->getNoWrapKind());
  return Left.binaryOp(Operation->getOpcode(), Right);
}

// The values of `Phi`, of which none is negative, with which the loop goes on from its latch.
static ConstantRange rangeInNextIteration(const PHINode &Phi, const Loop &L) {
  const unsigned Bits = Phi.getType()->getIntegerBitWidth();
  const auto NotNegative = ConstantRange(APInt::getZero(Bits), APInt::getSignedMinValue(Bits));
  const auto *Latch = dyn_cast<BranchInst>(L.getLoopLatch()->getTerminator());
  CmpPredicate Predicate;
  const APInt *Bound;
  if (!Latch || !Latch->isConditional() || Latch->getSuccessor(0) == Latch->getSuccessor(1) ||
      !match(Latch->getCondition(), m_ICmp(Predicate, m_Specific(&Phi), m_APInt(Bound))))
    return NotNegative;
  const ICmpInst::Predicate Taken = Latch->getSuccessor(0) == L.getHeader()
                                        ? static_cast<ICmpInst::Predicate>(Predicate)
                                        : ICmpInst::getInversePredicate(Predicate);
  return NotNegative.intersectWith(ConstantRange::makeExactICmpRegion(Taken, *Bound), ConstantRange::Signed);
}

static bool isNeverNegative(const PHINode &Phi, const Loop &L, ScalarEvolution &Evolution) {
  const BasicBlock *Before = L.getLoopPredecessor(), *Latch = L.getLoopLatch();
  if (!Before || !Latch)
    return false;
  Value *First = Phi.getIncomingValueForBlock(Before), *Next = Phi.getIncomingValueForBlock(Latch);
  return rangeOf(Next, &Phi, rangeInNextIteration(Phi, L)).isAllNonNegative() &&
         Evolution.isLoopEntryGuardedByCond(&L, ICmpInst::ICMP_SGE, Evolution.getSCEV(First),
                                            Evolution.getZero(Phi.getType()));
}

bool pleachMakeDivisionsUnsigned(Function &F, FunctionAnalysisManager &FAM) {
  SmallVector<std::pair<BinaryOperator *, const Loop *>, 4> Divisions;
  auto &Loops = FAM.getResult<LoopAnalysis>(F);
  for (const Loop *L : Loops.getLoopsInPreorder())
    for (PHINode &Phi : L->getHeader()->phis())
      for (User *U : Phi.users()) {
        const APInt *Divisor;
        auto *Division = dyn_cast<BinaryOperator>(U);
        if (Division && Division->getType()->isIntegerTy() && Division->getOperand(0) == &Phi &&
            (match(Division, m_SDiv(m_Value(), m_APInt(Divisor))) ||
             match(Division, m_SRem(m_Value(), m_APInt(Divisor)))) &&
            Divisor->isStrictlyPositive())
          Divisions.emplace_back(Division, L);
      }
  bool Changed = false;
  for (auto [Division, L] : Divisions) {
    auto *Phi = cast<PHINode>(Division->getOperand(0));
    if (!isNeverNegative(*Phi, *L, FAM.getResult<ScalarEvolutionAnalysis>(F)))
      continue;
    const bool Divides = Division->getOpcode() == Instruction::SDiv;
    auto *Unsigned = BinaryOperator::Create(Divides ? Instruction::UDiv : Instruction::URem, Phi,
                                            Division->getOperand(1), "", Division->getIterator());
    if (Divides)
      Unsigned->setIsExact(Division->isExact());
    Unsigned->takeName(Division);
    Unsigned->setDebugLoc(Division->getDebugLoc());
    Division->replaceAllUsesWith(Unsigned);
    Division->eraseFromParent();
    Changed = true;
  }
  return Changed;
}
