// Keeps probes from preventing vectorisation, without which a loop may take several times as long.
//
// To vectorise a loop with branches, LLVM executes both arms of each and selects between the results, or branches for
// each element. It does neither with a probe in an arm. The arms of loops that may be vectorised without probes have none
// until then. What is vectorised has no arms any more, so that their counts are unknown.
#include "pleach.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/DemandedBits.h"
#include "llvm/Analysis/LoopAccessAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Vectorize/LoopVectorizationLegality.h"

using namespace llvm;

// On terminators: the probes of their blocks while loops are vectorised.
static constexpr char SetAsideMetadata[] = "pleach.set-aside";

static SmallVector<PseudoProbeInst *> probesInArms(const Loop &L, const DominatorTree &DT) {
  SmallVector<PseudoProbeInst *> Found;
  if (const BasicBlock *Latch = L.getLoopLatch(); Latch && L.isInnermost())
    for (BasicBlock *BB : L.blocks())
      if (!DT.dominates(BB, Latch))
        for (Instruction &I : *BB)
          if (auto *Probe = dyn_cast<PseudoProbeInst>(&I))
            Found.push_back(Probe);
  return Found;
}

static bool isLegal(Loop &L, Function &F, FunctionAnalysisManager &FAM) {
  auto &TTI = FAM.getResult<TargetIRAnalysis>(F);
  auto &ORE = FAM.getResult<OptimizationRemarkEmitterAnalysis>(F);
  PredicatedScalarEvolution PSE(FAM.getResult<ScalarEvolutionAnalysis>(F), L);
  LoopVectorizeHints Hints(&L, /*InterleaveOnlyWhenForced=*/false, ORE, &TTI);
  if (!Hints.allowVectorization(&F, &L, /*VectorizeOnlyWhenForced=*/false))
    return false;
  LoopVectorizationRequirements Requirements;
  LoopVectorizationLegality Legality(
      &L, PSE, &FAM.getResult<DominatorTreeAnalysis>(F), &TTI, &FAM.getResult<TargetLibraryAnalysis>(F), &F,
      FAM.getResult<LoopAccessAnalysis>(F), &FAM.getResult<LoopAnalysis>(F), &ORE, &Requirements, &Hints,
      &FAM.getResult<DemandedBitsAnalysis>(F), &FAM.getResult<AssumptionAnalysis>(F),
      /*AllowRuntimeSCEVChecks=*/!F.hasOptSize(), &FAM.getResult<AAManager>(F));
  return Legality.canVectorize(/*UseVPlanNativePath=*/false);
}

// Replaces a probe that is in no block by metadata of the block that it was in.
static void setAside(PseudoProbeInst &Probe, Instruction &Terminator) {
  LLVMContext &Context = Terminator.getContext();
  SmallVector<Metadata *> All;
  if (const MDNode *Others = Terminator.getMetadata(SetAsideMetadata))
    append_range(All, Others->operands());
  SmallVector<Metadata *> Fields{Probe.getDebugLoc().getAsMDNode()};
  for (Value *Field : Probe.args())
    Fields.push_back(ConstantAsMetadata::get(cast<Constant>(Field)));
  All.push_back(MDNode::get(Context, Fields));
  Terminator.setMetadata(SetAsideMetadata, MDNode::get(Context, All));
  Probe.deleteValue();
}

bool pleachSetProbesAside(Function &F, FunctionAnalysisManager &FAM) {
  auto &DT = FAM.getResult<DominatorTreeAnalysis>(F);
  auto &LI = FAM.getResult<LoopAnalysis>(F);
  bool Changed = false, AnySetAside = false;
  for (Loop *L : LI.getLoopsInPreorder()) {
    SmallVector<PseudoProbeInst *> Probes = probesInArms(*L, DT);
    if (Probes.empty())
      continue;
    // As the vectoriser does before it judges a loop.
    auto &SE = FAM.getResult<ScalarEvolutionAnalysis>(F);
    Changed |= simplifyLoop(L, &DT, &LI, &SE, &FAM.getResult<AssumptionAnalysis>(F), nullptr, /*PreserveLCSSA=*/false);
    Changed |= formLCSSARecursively(*L, DT, &LI, &SE);
    // Only without them is it known whether they are all that prevents it.
    SmallVector<std::pair<Instruction *, Instruction *>> Places; // what follows, and the terminator
    for (PseudoProbeInst *Probe : Probes) {
      Places.push_back({Probe->getNextNode(), Probe->getParent()->getTerminator()});
      Probe->removeFromParent();
    }
    const bool IsLegal = isLegal(*L, F, FAM);
    AnySetAside |= IsLegal;
    // From the last on: what follows a probe may be a probe.
    for (auto [Probe, Place] : reverse(zip_equal(Probes, Places)))
      if (IsLegal)
        setAside(*Probe, *Place.second);
      else
        Probe->insertBefore(Place.first->getIterator());
  }
  if (AnySetAside) {
    // The probes also kept arms with stores from being simplified.
    FAM.invalidate(F, PreservedAnalyses::none());
    InstCombinePass().run(F, FAM);
    FAM.invalidate(F, PreservedAnalyses::none());
    SimplifyCFGPass(SimplifyCFGOptions().convertSwitchRangeToICmp(true).hoistCommonInsts(true).sinkCommonInsts(true))
        .run(F, FAM);
  }
  return Changed || AnySetAside;
}

bool pleachPutProbesBack(Function &F, FunctionAnalysisManager &FAM) {
  bool Changed = false;
  for (BasicBlock &BB : F) {
    Instruction *Terminator = BB.getTerminator();
    const MDNode *Probes = Terminator->getMetadata(SetAsideMetadata);
    if (!Probes)
      continue;
    Terminator->setMetadata(SetAsideMetadata, nullptr);
    const Loop *L = FAM.getResult<LoopAnalysis>(F).getLoopFor(&BB);
    if (!L || getBooleanLoopAttribute(L, "llvm.loop.isvectorized"))
      continue;
    IRBuilder<> B(&BB, BB.getFirstInsertionPt());
    for (const MDOperand &Probe : reverse(Probes->operands())) { // as they were, from first to last
      const auto *Fields = cast<MDNode>(Probe);
      SmallVector<Value *> Arguments;
      for (const MDOperand &Field : drop_begin(Fields->operands()))
        Arguments.push_back(mdconst::extract<Constant>(Field));
      B.SetCurrentDebugLocation(DebugLoc(cast_or_null<DILocation>(Fields->getOperand(0).get())));
      B.CreateIntrinsic(Intrinsic::pseudoprobe, {}, Arguments);
    }
    Changed = true;
  }
  return Changed;
}

void pleachHoistProbes(Function &F) {
  for (BasicBlock &BB : F) {
    BasicBlock::iterator To = BB.getFirstInsertionPt();
    for (Instruction &I : make_early_inc_range(make_range(To, BB.end())))
      if (!isa<PseudoProbeInst>(I)) {
        if (isa<CallBase>(I) && !isa<IntrinsicInst>(I))
          To = std::next(I.getIterator());
      } else if (To == I.getIterator()) {
        ++To;
      } else {
        I.moveBefore(To);
      }
  }
}
