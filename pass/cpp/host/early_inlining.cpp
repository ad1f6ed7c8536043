// Small callees are inlined before the profile has anything inlined, as clang does before it applies its own profiles.
//
// The inliner goes bottom-up, and takes hot calls with much code: where the cold part of a small function calls a large one often enough,
// the large one ends up in the small one, which is then too large for its own callers.
//
// Local functions that are called from one place only are left to the profile: there the inliner minds neither size nor how seldom they run.
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

// In units of the inliner's, of which an instruction costs 5: code that the callee may have beyond what its call takes. Of 15, 40 and 75 (clang's own)
// this did best on programs that nothing is reported of.
static constexpr int Threshold = 15;
// The inliner's own for functions declared inline, as clang has it before its own profiles.
static constexpr int HintThreshold = 325;

// Functions that are not to be inlined yet have this attribute beside the one that says so to the inliner.
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

// From here on the inliner may know the profile.
struct PleachTellInlinerPass : PassInfoMixin<PleachTellInlinerPass> {
  static bool isRequired() { return true; } // otherwise marks would stay

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

void pleachInlineSmallCallees(ModulePassManager &MPM, ThinOrFullLTOPhase Phase) {
  InlineParams Params;
  Params.DefaultThreshold = Threshold;
  Params.HintThreshold = HintThreshold;
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

void pleachTellInliner(ModulePassManager &MPM) { MPM.addPass(PleachTellInlinerPass()); }
