// Keeps loops with few iterations, by the profile, from being vectorised with predicated accesses, or not at all.
//
// LLVM vectorises a loop that is expected to run fewer than 16 times only without a scalar remainder: every access is
// predicated. Where the target has no masked accesses, a predicated one is a branch for each element. LLVM's cost model
// assumes that half of these branches are not taken and so prefers them to the scalar loop; or it leaves the loop scalar.
// Loops with few iterations stay scalar here, so that they can be peeled. Others are vectorised as without a profile:
// other input may have many iterations, and what a vector body that is rarely entered costs is little beside what a
// scalar loop then loses. Where a register holds more elements than the loop has iterations, LLVM must not know how few
// they are: it may give the loop no second, narrower vector body for the remainder, which is all that runs.
#include "pleach.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

static constexpr char Vectorise[] = "llvm.loop.vectorize.enable";

// Whether loop metadata already has a vectorisation or interleaving hint.
static bool hasHint(const Loop &L) {
  const MDNode *ID = L.getLoopID();
  return ID && any_of(drop_begin(ID->operands()), [](const MDOperand &Operand) {
    const auto *Hint = dyn_cast<MDNode>(Operand);
    const auto *Name = Hint && Hint->getNumOperands() ? dyn_cast<MDString>(Hint->getOperand(0)) : nullptr;
    return Name && (Name->getString().starts_with("llvm.loop.vectorize.") ||
                    Name->getString().starts_with("llvm.loop.interleave.") ||
                    Name->getString() == "llvm.loop.isvectorized");
  });
}

static bool isMasked(const Instruction &I, const TargetTransformInfo &TTI) {
  if (const auto *Load = dyn_cast<LoadInst>(&I))
    return TTI.isLegalMaskedLoad(Load->getType(), Load->getAlign(), Load->getPointerAddressSpace());
  if (const auto *Store = dyn_cast<StoreInst>(&I))
    return TTI.isLegalMaskedStore(Store->getValueOperand()->getType(), Store->getAlign(),
                                  Store->getPointerAddressSpace());
  return true;
}

// Elements that a register of the target holds, of the smallest type that a loop loads or stores.
static uint64_t elementsOfRegister(const Loop &L, const TargetTransformInfo &TTI, const DataLayout &DL) {
  const uint64_t Register = TTI.getRegisterBitWidth(TargetTransformInfo::RGK_FixedWidthVector).getKnownMinValue();
  uint64_t Smallest = Register;
  for (const BasicBlock *BB : L.blocks())
    for (const Instruction &I : *BB)
      if (isa<LoadInst, StoreInst>(I))
        Smallest = std::min(Smallest, DL.getTypeSizeInBits(getLoadStoreType(&I)->getScalarType()).getKnownMinValue());
  return Smallest ? Register / Smallest : 0;
}

bool pleachLeaveShortLoops(Function &F, FunctionAnalysisManager &FAM, const PleachLimits &Limits) {
  if (!F.getEntryCount())
    return false;
  auto &Loops = FAM.getResult<LoopAnalysis>(F);
  auto &TTI = FAM.getResult<TargetIRAnalysis>(F);
  bool Changed = false;
  for (Loop *L : Loops.getLoopsInPreorder()) {
    if (!L->isInnermost() || hasHint(*L))
      continue;
    const auto Iterations = getLoopEstimatedTripCount(L);
    if (!Iterations || *Iterations >= Limits.LLVMMinTripCount)
      continue;
    const bool Masked = all_of(L->blocks(), [&](const BasicBlock *BB) {
      return all_of(*BB, [&](const Instruction &I) { return isMasked(I, TTI); });
    });
    if (Masked || FAM.getResult<ScalarEvolutionAnalysis>(F).getSmallConstantTripCount(L))
      continue;
    if (*Iterations < Limits.MinTripCountToVectorise)
      addStringMetadataToLoop(L, Vectorise, 0);
    else
      setLoopEstimatedTripCount(L, elementsOfRegister(*L, TTI, F.getDataLayout()) > *Iterations
                                       ? Limits.AssumedTripCount
                                       : Limits.LLVMMinTripCount);
    Changed = true;
  }
  return Changed;
}
