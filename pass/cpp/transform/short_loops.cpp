// Peels loops with few iterations, by the profile, before loops are vectorised, and has the rest vectorised as without a
// profile.
//
// LLVM vectorises a loop that is expected to run fewer than 16 times only without a scalar remainder: every access is
// predicated. Where the target has no masked accesses, a predicated one is a branch for each element. LLVM's cost model
// assumes that half of these branches are not taken and so prefers them to the scalar loop; or it leaves the loop scalar.
// Other input may have many iterations, for which a scalar loop takes several times as long. So what LLVM would peel
// afterwards is peeled here, by LLVM's own rules: few iterations run scalar code and leave, and the rest is vectorised.
// Where a register holds more elements than a loop has iterations, LLVM must not know how few they are: it may give the
// loop no second, narrower vector body for the remainder, which is all that runs.
//
// From few bursts, it is not known how often loops run: they are peeled, unrolled and vectorised as without a profile.
#include "pleach.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/CodeMetrics.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopPeel.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"

using namespace llvm;


static constexpr char DisableRuntimeUnrolling[] = "llvm.loop.unroll.runtime.disable";

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

// Peels as many iterations as LLVM would peel after vectorisation. Returns whether it peels any.
static bool peel(Loop &L, FunctionAnalysisManager &FAM) {
  constexpr unsigned OptLevel = 2;
  Function &F = *L.getHeader()->getParent();
  auto &Loops = FAM.getResult<LoopAnalysis>(F);
  auto &Dominators = FAM.getResult<DominatorTreeAnalysis>(F);
  auto &Assumptions = FAM.getResult<AssumptionAnalysis>(F);
  auto &Evolution = FAM.getResult<ScalarEvolutionAnalysis>(F);
  auto &TTI = FAM.getResult<TargetIRAnalysis>(F);
  auto &Remarks = FAM.getResult<OptimizationRemarkEmitterAnalysis>(F);
  // `#pragma nounroll` forbids peeling as well.
  if (!canPeel(&L) || hasUnrollTransformation(&L) & TM_Disable)
    return false;
  SmallPtrSet<const Value *, 32> Ephemeral;
  CodeMetrics::collectEphemeralValues(&L, &Assumptions, Ephemeral);
  const auto Unrolling = gatherUnrollingPreferences(&L, Evolution, TTI, nullptr, nullptr, Remarks, OptLevel, std::nullopt,
                                                    std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  const UnrollCostEstimator Cost(&L, TTI, Ephemeral, Unrolling.BEInsns);
  if (!Cost.canUnroll() || Cost.NumInlineCandidates)
    return false;
  auto Peeling = gatherPeelingPreferences(&L, Evolution, TTI, std::nullopt, std::nullopt, true);
  computePeelCount(&L, Cost.getRolledLoopSize(), Peeling, /*TripCount=*/0, Dominators, Evolution, TTI, &Assumptions,
                   Unrolling.Threshold);
  if (!Peeling.PeelCount || Peeling.PeelLast)
    return false;
  ValueToValueMapTy Copies;
  return peelLoop(&L, Peeling.PeelCount, /*PeelLast=*/false, &Loops, &Evolution, Dominators, &Assumptions,
                  /*PreserveLCSSA=*/true, Copies);
}

bool pleachPeelShortLoops(Function &F, FunctionAnalysisManager &FAM, const PleachLimits &Limits) {
  if (!F.getEntryCount())
    return false;
  auto &Loops = FAM.getResult<LoopAnalysis>(F);
  auto &Dominators = FAM.getResult<DominatorTreeAnalysis>(F);
  auto &Assumptions = FAM.getResult<AssumptionAnalysis>(F);
  auto &Evolution = FAM.getResult<ScalarEvolutionAnalysis>(F);
  auto &TTI = FAM.getResult<TargetIRAnalysis>(F);
  if (F.getParent()->getModuleFlag(PleachFewBurstsFlag)) {
    for (Loop *L : Loops.getLoopsInPreorder())
      setLoopEstimatedTripCount(L, 0); // unknown
    return false;
  }
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
    if (Masked || Evolution.getSmallConstantTripCount(L))
      continue;
    Loop *Nest = L->getOutermostLoop();
    Changed |= simplifyLoop(Nest, &Dominators, &Loops, &Evolution, &Assumptions, nullptr, /*PreserveLCSSA=*/false);
    Changed |= formLCSSARecursively(*Nest, Dominators, &Loops, &Evolution);
    if (peel(*L, FAM)) {
      setLoopEstimatedTripCount(L, 0); // unknown
      addStringMetadataToLoop(L, DisableRuntimeUnrolling);
      Changed = true;
    } else {
      setLoopEstimatedTripCount(L, elementsOfRegister(*L, TTI, F.getDataLayout()) > *Iterations
                                       ? Limits.AssumedTripCount
                                       : Limits.LLVMMinTripCount);
    }
  }
  return Changed;
}
