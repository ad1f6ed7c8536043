// Inlines small callees before the profile is revealed to the inliner, as clang does before it applies its own
// profiles.
//
// The inliner works bottom-up and accepts large callees for hot calls. If it inlined a large function into the cold
// part of a small one, the small one would become too large for its own callers.
//
// Local functions with one call site are left for the inliner that knows the profile: otherwise they would be inlined
// whatever their size and however rarely they run.
#include "pleach.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

// Marks functions that are `noinline` only until the profile is revealed.
static constexpr char LaterAttribute[] = "pleach-inline-later";

namespace {

struct PleachLeaveOnlyCallsPass : PassInfoMixin<PleachLeaveOnlyCallsPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    for (Function &F : M)
      if (F.hasLocalLinkage() && F.hasOneUse() && !F.hasFnAttribute(Attribute::NoInline) &&
          !F.hasFnAttribute(Attribute::AlwaysInline)) {
        F.addFnAttr(Attribute::NoInline);
        F.addFnAttr(LaterAttribute);
      }
    return PreservedAnalyses::all();
  }
};

// Reveals the profile to the inliner.
struct PleachRevealProfilePass : PassInfoMixin<PleachRevealProfilePass> {
  static bool isRequired() { return true; } // otherwise the attributes would remain

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    MAM.getResult<ProfileSummaryAnalysis>(M).refresh();
    for (Function &F : M) {
      if (F.hasFnAttribute(PleachHotAttribute)) {
        F.removeFnAttr(PleachHotAttribute);
        F.addFnAttr(Attribute::InlineHint);
      }
      if (F.hasFnAttribute(LaterAttribute)) {
        F.removeFnAttr(LaterAttribute);
        F.removeFnAttr(Attribute::NoInline);
      }
    }
    return PreservedAnalyses::all();
  }
};

} // namespace

void pleachInlineSmallCallees(ModulePassManager &MPM, ThinOrFullLTOPhase Phase, const PleachLimits &Limits) {
  InlineParams Params;
  Params.DefaultThreshold = Limits.EarlyInlineThreshold;
  Params.HintThreshold = Limits.EarlyInlineHintThreshold;
  ModuleInlinerWrapperPass Inliner(Params, /*MandatoryFirst=*/true,
                                   InlineContext{Phase, InlinePass::EarlyInliner});
  FunctionPassManager FPM;
  FPM.addPass(SROAPass(SROAOptions::ModifyCFG));
  FPM.addPass(EarlyCSEPass());
  FPM.addPass(SimplifyCFGPass(SimplifyCFGOptions().convertSwitchRangeToICmp(true)));
  FPM.addPass(InstCombinePass());
  Inliner.getPM().addPass(createCGSCCToFunctionPassAdaptor(std::move(FPM)));
  MPM.addPass(PleachLeaveOnlyCallsPass());
  MPM.addPass(std::move(Inliner));
  MPM.addPass(GlobalDCEPass());
}

void pleachRevealProfile(ModulePassManager &MPM) { MPM.addPass(PleachRevealProfilePass()); }
