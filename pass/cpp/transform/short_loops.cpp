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
// Where most visits of a loop are short and its mean number of iterations is not, as many iterations are peeled as pay
// (feedback/decide/src/trip_counts.rs), and the rest is vectorised or unrolled as without a profile.
//
// What is left of a loop that runs equally often in nearly all visits runs only with other input, and is unrolled, too.
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
#include "llvm/IR/ProfDataUtils.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Utils/LoopPeel.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"

using namespace llvm;

static constexpr char DisableRuntimeUnrolling[] = "llvm.loop.unroll.runtime.disable";
// Metadata of a loop whose visits are mostly short: shares of visits, in thousandths, that end after at most one
// iteration, two, …, and the mean iterations that the others have left then.
static constexpr char ShortVisits[] = "pleach.loop.short-visits";
// Metadata of a loop nearly all of whose visits have as many iterations as LLVM peels.
static constexpr char Steady[] = "pleach.loop.steady";

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

// A loop that may be peeled.
struct PeelableLoop {
  Loop &L;
  LoopInfo &Loops;
  DominatorTree &Dominators;
  AssumptionCache &Assumptions;
  ScalarEvolution &Evolution;
  const TargetTransformInfo &TTI;
  // In LLVM's units of code size, and how large LLVM lets it become by peeling.
  unsigned Size;
  unsigned MaxSize;

  bool peel(unsigned Iterations) {
    ValueToValueMapTy Copies;
    return peelLoop(&L, Iterations, /*PeelLast=*/false, &Loops, &Evolution, Dominators, &Assumptions,
                    /*PreserveLCSSA=*/true, Copies);
  }
};

static std::optional<PeelableLoop> peelable(Loop &L, FunctionAnalysisManager &FAM) {
  constexpr unsigned OptLevel = 2;
  Function &F = *L.getHeader()->getParent();
  auto &Assumptions = FAM.getResult<AssumptionAnalysis>(F);
  auto &Evolution = FAM.getResult<ScalarEvolutionAnalysis>(F);
  auto &TTI = FAM.getResult<TargetIRAnalysis>(F);
  auto &Remarks = FAM.getResult<OptimizationRemarkEmitterAnalysis>(F);
  // `#pragma nounroll` forbids peeling as well.
  if (!canPeel(&L) || hasUnrollTransformation(&L) & TM_Disable)
    return std::nullopt;
  SmallPtrSet<const Value *, 32> Ephemeral;
  CodeMetrics::collectEphemeralValues(&L, &Assumptions, Ephemeral);
  const auto Unrolling = gatherUnrollingPreferences(&L, Evolution, TTI, nullptr, nullptr, Remarks, OptLevel, std::nullopt,
                                                    std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  const UnrollCostEstimator Cost(&L, TTI, Ephemeral, Unrolling.BEInsns);
  if (!Cost.canUnroll() || Cost.NumInlineCandidates)
    return std::nullopt;
  return PeelableLoop{L,           FAM.getResult<LoopAnalysis>(F), FAM.getResult<DominatorTreeAnalysis>(F),
                      Assumptions, Evolution,                      TTI,
                      static_cast<unsigned>(Cost.getRolledLoopSize()), Unrolling.Threshold};
}

// Peels as many iterations as LLVM would peel after vectorisation. Returns whether it peels any.
static bool peelByMean(Loop &L, FunctionAnalysisManager &FAM) {
  auto Peelable = peelable(L, FAM);
  if (!Peelable)
    return false;
  auto Peeling = gatherPeelingPreferences(&L, Peelable->Evolution, Peelable->TTI, std::nullopt, std::nullopt, true);
  computePeelCount(&L, Peelable->Size, Peeling, /*TripCount=*/0, Peelable->Dominators, Peelable->Evolution,
                   Peelable->TTI, &Peelable->Assumptions, Peelable->MaxSize);
  return Peeling.PeelCount && !Peeling.PeelLast && Peelable->peel(Peeling.PeelCount);
}

// The numbers of `ShortVisits`; none where a loop is not marked.
static SmallVector<uint32_t, 4> shortVisits(const Loop &L) {
  SmallVector<uint32_t, 4> Numbers;
  if (const MDNode *Node = findOptionMDForLoop(&L, ShortVisits))
    for (const MDOperand &Operand : drop_begin(Node->operands()))
      Numbers.push_back(static_cast<uint32_t>(mdconst::extract<ConstantInt>(Operand)->getZExtValue()));
  return Numbers;
}

// Gives the exits of peeled iterations the weights that the profile shows. `Copies`: their blocks, in order.
static void weighPeeledExits(const BasicBlock *Exit, ArrayRef<uint32_t> Within, ArrayRef<BasicBlock *> Copies) {
  uint32_t Ended = 0;
  for (BasicBlock *BB : Copies) {
    auto *Branch = dyn_cast<BranchInst>(BB->getTerminator());
    if (!Branch || !Branch->isConditional() || !is_contained(Branch->successors(), Exit))
      continue;
    if (Within.empty())
      return;
    // No way is impossible.
    const uint32_t Leaves = Within.front() - Ended + 1, Stays = 1000 - Within.front() + 1;
    const bool ExitsFirst = Branch->getSuccessor(0) == Exit;
    setBranchWeights(*Branch, ExitsFirst ? ArrayRef{Leaves, Stays} : ArrayRef{Stays, Leaves}, /*IsExpected=*/false);
    Ended = Within.front();
    Within = Within.drop_front();
  }
}

// Peels a loop whose visits are mostly short. Returns whether it does.
static bool peelByVisits(Loop &L, ArrayRef<uint32_t> Within, FunctionAnalysisManager &FAM) {
  auto Peelable = peelable(L, FAM);
  if (!Peelable || Peelable->Size * (Within.size() + 1) > Peelable->MaxSize)
    return false;
  Function &F = *L.getHeader()->getParent();
  const BasicBlock *Exit = L.getExitingBlock() ? L.getExitBlock() : nullptr;
  SmallPtrSet<const BasicBlock *, 32> Before;
  for (const BasicBlock &BB : F)
    Before.insert(&BB);
  if (!Peelable->peel(static_cast<unsigned>(Within.size())))
    return false;
  SmallVector<BasicBlock *> Copies;
  for (BasicBlock &BB : F)
    if (!Before.contains(&BB))
      Copies.push_back(&BB);
  if (Exit)
    weighPeeledExits(Exit, Within, Copies);
  return true;
}

static void simplifyNest(Loop &L, FunctionAnalysisManager &FAM) {
  Function &F = *L.getHeader()->getParent();
  auto &Loops = FAM.getResult<LoopAnalysis>(F);
  auto &Dominators = FAM.getResult<DominatorTreeAnalysis>(F);
  auto &Evolution = FAM.getResult<ScalarEvolutionAnalysis>(F);
  Loop *Nest = L.getOutermostLoop();
  simplifyLoop(Nest, &Dominators, &Loops, &Evolution, &FAM.getResult<AssumptionAnalysis>(F), nullptr,
               /*PreserveLCSSA=*/false);
  formLCSSARecursively(*Nest, Dominators, &Loops, &Evolution);
}

// Keeps what peeled iterations store in registers, in enclosing loops: LLVM knows that what is left of a loop stores
// elsewhere as long as that is scalar.
static void simplifyPeeled(Function &F, FunctionAnalysisManager &FAM) {
  FAM.invalidate(F, PreservedAnalyses::none());
  FAM.invalidate(F, InstCombinePass().run(F, FAM));
  createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), /*UseMemorySSA=*/true).run(F, FAM);
}

bool pleachPeelShortLoops(Function &F, FunctionAnalysisManager &FAM, const PleachLimits &Limits) {
  if (!F.getEntryCount())
    return false;
  auto &Loops = FAM.getResult<LoopAnalysis>(F);
  auto &Evolution = FAM.getResult<ScalarEvolutionAnalysis>(F);
  auto &TTI = FAM.getResult<TargetIRAnalysis>(F);
  if (F.getParent()->getModuleFlag(PleachFewBurstsFlag)) {
    for (Loop *L : Loops.getLoopsInPreorder())
      setLoopEstimatedTripCount(L, 0); // unknown
    return false;
  }
  bool Changed = false, Peeled = false;
  for (Loop *L : Loops.getLoopsInPreorder()) {
    if (!L->isInnermost() || hasHint(*L) || Evolution.getSmallConstantTripCount(L))
      continue;
    if (const auto Visits = shortVisits(*L); Visits.size() > 1) {
      simplifyNest(*L, FAM);
      Changed = true;
      // Once: linking may run this pass again.
      L->setLoopID(makePostTransformationMetadata(F.getContext(), L->getLoopID(), {ShortVisits}, {}));
      if (peelByVisits(*L, ArrayRef(Visits).drop_back(), FAM)) {
        Peeled = true;
        const uint32_t Rest = Visits.back();
        setLoopEstimatedTripCount(L, Rest, /*EstimatedLoopInvocationWeight=*/1000);
        if (Rest < Limits.LLVMMinTripCount)
          setLoopEstimatedTripCount(L, 0); // unknown
        continue;
      }
    }
    const auto Iterations = getLoopEstimatedTripCount(L);
    if (!Iterations || *Iterations >= Limits.LLVMMinTripCount)
      continue;
    const bool Masked = all_of(L->blocks(), [&](const BasicBlock *BB) {
      return all_of(*BB, [&](const Instruction &I) { return isMasked(I, TTI); });
    });
    if (Masked)
      continue;
    simplifyNest(*L, FAM);
    Changed = true;
    if (peelByMean(*L, FAM)) {
      Peeled = true;
      setLoopEstimatedTripCount(L, 0); // unknown
      if (findOptionMDForLoop(L, Steady))
        L->setLoopID(makePostTransformationMetadata(F.getContext(), L->getLoopID(), {Steady}, {}));
      else
        addStringMetadataToLoop(L, DisableRuntimeUnrolling);
    } else {
      setLoopEstimatedTripCount(L, elementsOfRegister(*L, TTI, F.getDataLayout()) > *Iterations
                                       ? Limits.AssumedTripCount
                                       : Limits.LLVMMinTripCount);
    }
  }
  if (Peeled)
    simplifyPeeled(F, FAM);
  return Changed;
}

// Adds an option to a loop's, by the terminators of its latches.
static void addOption(ArrayRef<LLVMValueRef> Latches, ArrayRef<Metadata *> Option) {
  LLVMContext &Context = unwrap<Instruction>(Latches[0])->getContext();
  SmallVector<Metadata *> Options{nullptr}; // itself
  if (const MDNode *Old = unwrap<Instruction>(Latches[0])->getMetadata(LLVMContext::MD_loop))
    append_range(Options, drop_begin(Old->operands()));
  Options.push_back(MDNode::get(Context, Option));
  MDNode *ID = MDNode::getDistinct(Context, Options);
  ID->replaceOperandWith(0, ID);
  for (LLVMValueRef Latch : Latches)
    unwrap<Instruction>(Latch)->setMetadata(LLVMContext::MD_loop, ID);
}

extern "C" {

// Marks a loop whose visits are mostly short, by the terminators of its latches. `Permille`: shares of visits that end
// after at most one iteration, two, …; `Rest`: mean iterations that the others have left then.
void pleach_set_short_visits(const LLVMValueRef *Latches, size_t LatchCount, const uint32_t *Permille,
                             size_t PermilleCount, uint32_t Rest) {
  if (!LatchCount)
    return;
  LLVMContext &Context = unwrap<Instruction>(Latches[0])->getContext();
  const auto Number = [&](uint32_t N) -> Metadata * {
    return ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(Context), N));
  };
  SmallVector<Metadata *> Visits{MDString::get(Context, ShortVisits)};
  for (uint32_t Share : ArrayRef(Permille, PermilleCount))
    Visits.push_back(Number(Share));
  Visits.push_back(Number(Rest));
  addOption(ArrayRef(Latches, LatchCount), Visits);
}

// Marks a loop nearly all of whose visits have as many iterations as LLVM peels.
void pleach_mark_steady_loop(const LLVMValueRef *Latches, size_t LatchCount) {
  if (LatchCount)
    addOption(ArrayRef(Latches, LatchCount), MDString::get(unwrap<Instruction>(Latches[0])->getContext(), Steady));
}

} // extern "C"
