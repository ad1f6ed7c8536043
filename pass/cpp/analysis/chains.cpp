#include "analysis/chains.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace pleach {

namespace {

constexpr unsigned MaxDepth = 64;
constexpr unsigned MaxFollowed = 256;

bool isRemainder(const Instruction &I) { return I.getOpcode() == Instruction::URem || I.getOpcode() == Instruction::SRem; }

} // namespace

double latency(const Instruction &I, const PleachLatencies &Of) {
  if (isa<LoadInst>(I))
    return Of.Load;
  // A constant is divided by with a multiplication, and a remainder with two, or with shifts.
  if (I.isIntDivRem() && PatternMatch::match(I.getOperand(1), PatternMatch::m_Power2()))
    return Of.Other;
  if (I.isIntDivRem() && isa<Constant>(I.getOperand(1)))
    return Of.Multiply + Of.Other + (isRemainder(I) ? Of.Multiply + Of.Other : 0);
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

bool couldBeBranch(const Instruction &I) {
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

bool dependentHeaderPhis(const Instruction &From, const Loop &L, SmallPtrSetImpl<const Value *> &Found) {
  SmallPtrSet<const Instruction *, 32> Seen;
  SmallVector<const Instruction *, 16> Work{&From};
  while (!Work.empty() && Seen.size() < MaxFollowed) {
    const Instruction *I = Work.pop_back_val();
    for (const User *U : I->users()) {
      auto *Next = dyn_cast<Instruction>(U);
      if (!Next || !L.contains(Next))
        continue;
      if (isa<PHINode>(Next) && Next->getParent() == L.getHeader())
        Found.insert(Next);
      else if (Seen.insert(Next).second)
        Work.push_back(Next);
    }
  }
  return Work.empty();
}

double ChainsFrom::to(const Value *V, unsigned Depth) {
  if (Sources.contains(V))
    return isa<LoadInst>(V) ? Latencies.Load : 0;
  auto *I = dyn_cast<Instruction>(V);
  if (!I || (L && !L->contains(I)) || (L && isa<PHINode>(I) && I->getParent() == L->getHeader()))
    return -1;
  auto Known = Longest.find(I);
  if (Known != Longest.end())
    return Known->second;
  if (Depth > MaxDepth) {
    Complete = false;
    return -1;
  }
  Longest[I] = -1;
  const auto *Select = dyn_cast<SelectInst>(I);
  const bool IsPredicted = Select && is_contained(Predicted, Select);
  double Max = -1;
  for (const Value *Operand : drop_begin(I->operand_values(), IsPredicted))
    Max = std::max(Max, to(Operand, Depth + 1));
  return Longest[I] = Max < 0 ? -1 : Max + (IsPredicted ? 0 : latency(*I, Latencies));
}

} // namespace pleach
