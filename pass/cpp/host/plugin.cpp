// Registration: which passes run where in the host's pipelines, and which run alone by name.
// Decisions are made in Rust (src/); the passes here call it.
#include "pleach.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Transforms/Instrumentation/ControlHeightReduction.h"
#include "llvm/Transforms/Instrumentation/PGOInstrumentation.h"

using namespace llvm;

namespace {

struct PleachPass : PassInfoMixin<PleachPass> {
  PleachRunFn Run;
  PleachStage Stage;
  uint32_t Phase;
  StringRef PipelineName;

  PleachPass(PleachRunFn Run, PleachStage Stage, ThinOrFullLTOPhase P, StringRef PipelineName = "pleach")
      : Run(Run), Stage(Stage), Phase(static_cast<uint32_t>(P)), PipelineName(PipelineName) {}

  static bool isRequired() { return true; } // also under optnone and opt-bisect
  static StringRef name() { return "PleachPass"; }

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    PleachRun Context{MAM};
    return Run(wrap(&M), &Context, Stage, Phase) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }

  void printPipeline(raw_ostream &OS, function_ref<StringRef(StringRef)>) { OS << PipelineName; }
};

// Promotes counters of loops to registers, after all inlining and before loops are vectorised.
struct PleachPromoteCountersPass : PassInfoMixin<PleachPromoteCountersPass> {
  PleachLimits Limits;

  explicit PleachPromoteCountersPass(const PleachLimits &Limits) : Limits(Limits) {}

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    return pleachPromoteCounters(F, Limits) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

// Runs right before loops are vectorised.
struct PleachPeelShortLoopsPass : PassInfoMixin<PleachPeelShortLoopsPass> {
  PleachLimits Limits;

  explicit PleachPeelShortLoopsPass(const PleachLimits &Limits) : Limits(Limits) {}

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    return pleachPeelShortLoops(F, FAM, Limits) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

// Runs after vectors are formed.
struct PleachNarrowLoadsPass : PassInfoMixin<PleachNarrowLoadsPass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    if (!pleachNarrowLoads(F))
      return PreservedAnalyses::all();
    PreservedAnalyses Preserved;
    Preserved.preserveSet<CFGAnalyses>();
    return Preserved;
  }
};

// Runs after vectors are formed, before branches are simplified for the last time.
struct PleachSetRatesAsidePass : PassInfoMixin<PleachSetRatesAsidePass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    pleachSetRatesAside(F);
    return PreservedAnalyses::all();
  }
};

// Runs last, since other passes may make phis alike.
struct PleachSeparateLandingPadsPass : PassInfoMixin<PleachSeparateLandingPadsPass> {
  static bool isRequired() { return true; }

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    if (!pleachSeparateLandingPads(F))
      return PreservedAnalyses::all();
    PreservedAnalyses Preserved;
    Preserved.preserveSet<CFGAnalyses>();
    return Preserved;
  }
};

// Runs right before loops are vectorised, and later peeled.
struct PleachLeaveSearchesPass : PassInfoMixin<PleachLeaveSearchesPass> {
  PleachLimits Limits;

  explicit PleachLeaveSearchesPass(const PleachLimits &Limits) : Limits(Limits) {}

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    // Metadata only.
    pleachLeaveSearches(F, FAM, Limits);
    return PreservedAnalyses::all();
  }
};

// Ends the simplification of a function.
struct PleachMakeDivisionsUnsignedPass : PassInfoMixin<PleachMakeDivisionsUnsignedPass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    if (!pleachMakeDivisionsUnsigned(F, FAM))
      return PreservedAnalyses::all();
    PreservedAnalyses Preserved;
    Preserved.preserveSet<CFGAnalyses>();
    return Preserved;
  }
};

struct PleachSetProbesAsidePass : PassInfoMixin<PleachSetProbesAsidePass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    return pleachSetProbesAside(F, FAM) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

struct PleachPutProbesBackPass : PassInfoMixin<PleachPutProbesBackPass> {
  static bool isRequired() { return true; } // otherwise probes would be lost

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    return pleachPutProbesBack(F, FAM) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

struct PleachHoistProbesPass : PassInfoMixin<PleachHoistProbesPass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    // No analysis depends on where in a block a probe is.
    pleachHoistProbes(F);
    return PreservedAnalyses::all();
  }
};

struct PleachCleanUpPass : PassInfoMixin<PleachCleanUpPass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    return pleachCleanUpDuplicates(F, FAM) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

// Passes that `opt -passes=` runs alone.
struct NamedPass {
  StringLiteral Name;
  PleachStage Stage;
};
constexpr NamedPass NamedPasses[] = {
    {"pleach", EarlySimplification},
    {"pleach-annotate", OnlyAnnotate},
    {"pleach-use", OnlyUse},
    {"pleach-instrument", OnlyInstrument},
    {"pleach-if-conversion", OnlyIfConversion},
    {"pleach-select-to-branch", OnlySelectToBranch},
    {"pleach-superblocks", OnlySuperblocks},
    {"pleach-function-order", OnlyFunctionOrder},
    {"pleach-inherited-weights", OnlyInheritedWeights},
    {"pleach-switches", OnlySwitches},
};

bool isBeforeLink(ThinOrFullLTOPhase P) {
  return P == ThinOrFullLTOPhase::ThinLTOPreLink || P == ThinOrFullLTOPhase::FullLTOPreLink;
}

bool isPostLink(ThinOrFullLTOPhase P) {
  return P == ThinOrFullLTOPhase::ThinLTOPostLink || P == ThinOrFullLTOPhase::FullLTOPostLink;
}

} // namespace

extern "C" {

void pleach_register(void *Builder, PleachRunFn Run, PleachUsesProfileFn UsesProfile, const PleachLimits *Limits) {
  auto *PB = static_cast<llvm::PassBuilder *>(Builder);
  const PleachLimits Kept = *Limits;
  PB->registerPipelineEarlySimplificationEPCallback(
      [Run, UsesProfile, Kept](ModulePassManager &MPM, OptimizationLevel Level, ThinOrFullLTOPhase P) {
        const PleachHostPasses Wanted = pleachHostPasses();
        if (Wanted.WorkEarly && (Wanted.IdentifyBlocks || UsesProfile()) && Level != OptimizationLevel::O0 &&
            !isPostLink(P))
          pleachInlineMandatory(MPM);
        MPM.addPass(PleachPass(Run, EarlySimplification, P));
        if (UsesProfile() && Wanted.SpecialiseLengths && Level != OptimizationLevel::O0)
          MPM.addPass(createModuleToFunctionPassAdaptor(PleachKeepLengthsPass(P)));
        if (UsesProfile() && Wanted.InlineSmallCallees && Level != OptimizationLevel::O0 && !isPostLink(P))
          pleachInlineSmallCallees(MPM, P, Kept);
        if (UsesProfile())
          pleachEnableProfileSummary(MPM);
        // clang schedules these only for its own profiles. As there, promotion runs before the
        // inliner so that promoted calls can be inlined.
        if (UsesProfile() && Wanted.PromoteIndirectCalls && Level != OptimizationLevel::O0 &&
            P != ThinOrFullLTOPhase::FullLTOPostLink)
          MPM.addPass(PGOIndirectCallPromotion(
              /*InLTO=*/P == ThinOrFullLTOPhase::ThinLTOPostLink, /*SamplePGO=*/false));
      });
  PB->registerCGSCCOptimizerLateEPCallback([UsesProfile](CGSCCPassManager &CGPM, OptimizationLevel) {
    if (UsesProfile())
      pleachAfterInlining(CGPM);
  });
  PB->registerScalarOptimizerLateEPCallback([UsesProfile](FunctionPassManager &FPM, OptimizationLevel Level) {
    if (UsesProfile() && pleachHostPasses().InlineSmallCallees)
      FPM.addPass(PleachMakeDivisionsUnsignedPass());
    if (UsesProfile() && pleachHostPasses().SpecialiseLengths)
      FPM.addPass(PleachKeepLengthsPass());
    if (UsesProfile() && pleachHostPasses().ReduceControlHeight && Level == OptimizationLevel::O3)
      FPM.addPass(ControlHeightReductionPass());
  });
  PB->registerVectorizerStartEPCallback([UsesProfile, Kept](FunctionPassManager &FPM, OptimizationLevel Level) {
    FPM.addPass(PleachPromoteCountersPass(Kept));
    if (pleachHostPasses().IdentifyBlocks && Level.getSpeedupLevel() > 1)
      FPM.addPass(PleachSetProbesAsidePass());
    if (UsesProfile() && pleachHostPasses().LeaveSearches)
      FPM.addPass(PleachLeaveSearchesPass(Kept));
    if (UsesProfile() && pleachHostPasses().PeelShortLoops)
      FPM.addPass(PleachPeelShortLoopsPass(Kept));
  });
  PB->registerVectorizerEndEPCallback([UsesProfile](FunctionPassManager &FPM, OptimizationLevel Level) {
    if (UsesProfile() && pleachHostPasses().PeelShortLoops)
      FPM.addPass(PleachNarrowLoadsPass());
    if (UsesProfile())
      FPM.addPass(PleachSetRatesAsidePass());
    if (pleachHostPasses().IdentifyBlocks && Level.getSpeedupLevel() > 1)
      FPM.addPass(PleachPutProbesBackPass());
  });
  PB->registerPeepholeEPCallback([](FunctionPassManager &FPM, OptimizationLevel) {
    if (pleachHostPasses().IdentifyBlocks)
      FPM.addPass(PleachHoistProbesPass());
  });
  PB->registerOptimizerLastEPCallback([Run, UsesProfile](ModulePassManager &MPM, OptimizationLevel, ThinOrFullLTOPhase P) {
    MPM.addPass(PleachPass(Run, OptimizerLast, P));
    FunctionPassManager FPM;
    FPM.addPass(PleachCleanUpPass());
    if (UsesProfile() && pleachHostPasses().SpecialiseLengths) {
      FPM.addPass(PleachRevealLengthsPass());
      FPM.addPass(PleachSpecialiseLengthsPass());
    }
    if (UsesProfile() && pleachHostPasses().SpecialiseDivisors && !isBeforeLink(P))
      FPM.addPass(PleachDivideByFrequentPass());
    MPM.addPass(createModuleToFunctionPassAdaptor(std::move(FPM)));
    if (UsesProfile())
      MPM.addPass(PleachPass(Run, OptimizerEnd, P));
    if (UsesProfile())
      MPM.addPass(createModuleToFunctionPassAdaptor(PleachSeparateLandingPadsPass()));
  });
  PB->registerOptimizerEarlyEPCallback(
      [Run, UsesProfile](ModulePassManager &MPM, OptimizationLevel Level, ThinOrFullLTOPhase P) {
        if (Level == OptimizationLevel::O0)
          return;
        if (UsesProfile())
          pleachRaiseEntryCounts(MPM);
        MPM.addPass(PleachPass(Run, OptimizerEarly, P));
        // After inlining, unlike clang: functions with code for each length are too large to be inlined.
        if (UsesProfile() && pleachHostPasses().SpecialiseLengths)
          MPM.addPass(createModuleToFunctionPassAdaptor(PleachSpecialiseLengthsPass()));
      });
  PB->registerFullLinkTimeOptimizationLastEPCallback([Run](ModulePassManager &MPM, OptimizationLevel) {
    MPM.addPass(PleachPass(Run, OptimizerLast, ThinOrFullLTOPhase::FullLTOPostLink));
    if (pleachHostPasses().SpecialiseDivisors)
      MPM.addPass(createModuleToFunctionPassAdaptor(PleachDivideByFrequentPass()));
    MPM.addPass(createModuleToFunctionPassAdaptor(PleachSeparateLandingPadsPass()));
  });
  PB->registerPipelineParsingCallback(
      [Run, Kept](StringRef Name, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
        for (const NamedPass &Pass : NamedPasses)
          if (Name == Pass.Name) {
            MPM.addPass(PleachPass(Run, Pass.Stage, ThinOrFullLTOPhase::None, Pass.Name));
            return true;
          }
        if (Name == "pleach-mandatory-inlining") {
          pleachInlineMandatory(MPM);
          return true;
        }
        if (Name == "pleach-small-callees") {
          pleachInlineSmallCallees(MPM, ThinOrFullLTOPhase::None, Kept);
          pleachEnableProfileSummary(MPM);
          return true;
        }
        if (Name == "pleach-entry-counts") {
          pleachRaiseEntryCounts(MPM);
          return true;
        }
        return false;
      });
  PB->registerPipelineParsingCallback(
      [](StringRef Name, CGSCCPassManager &CGPM, ArrayRef<PassBuilder::PipelineElement>) {
        if (Name != "pleach-after-inlining")
          return false;
        pleachAfterInlining(CGPM);
        return true;
      });
  PB->registerPipelineParsingCallback(
      [Kept](StringRef Name, FunctionPassManager &FPM, ArrayRef<PassBuilder::PipelineElement>) {
        if (Name == "pleach-promote-counters")
          FPM.addPass(PleachPromoteCountersPass(Kept));
        else if (Name == "pleach-keep-lengths")
          FPM.addPass(PleachKeepLengthsPass());
        else if (Name == "pleach-reveal-lengths")
          FPM.addPass(PleachRevealLengthsPass());
        else if (Name == "pleach-divisors")
          FPM.addPass(PleachDivideByFrequentPass());
        else if (Name == "pleach-short-loops")
          FPM.addPass(PleachPeelShortLoopsPass(Kept));
        else if (Name == "pleach-narrow-loads")
          FPM.addPass(PleachNarrowLoadsPass());
        else if (Name == "pleach-set-rates-aside")
          FPM.addPass(PleachSetRatesAsidePass());
        else if (Name == "pleach-unsigned-divisions")
          FPM.addPass(PleachMakeDivisionsUnsignedPass());
        else if (Name == "pleach-landing-pads")
          FPM.addPass(PleachSeparateLandingPadsPass());
        else if (Name == "pleach-searches")
          FPM.addPass(PleachLeaveSearchesPass(Kept));
        else if (Name == "pleach-set-probes-aside")
          FPM.addPass(PleachSetProbesAsidePass());
        else if (Name == "pleach-put-probes-back")
          FPM.addPass(PleachPutProbesBackPass());
        else if (Name == "pleach-hoist-probes")
          FPM.addPass(PleachHoistProbesPass());
        else if (Name == "pleach-clean-up")
          FPM.addPass(PleachCleanUpPass());
        else
          return false;
        return true;
      });
}

uint32_t pleach_plugin_api_version() { return LLVM_PLUGIN_API_VERSION; }

// The layout that the Rust mirror of PassPluginLibraryInfo must have.
size_t pleach_plugin_info_size() { return sizeof(PassPluginLibraryInfo); }

} // extern "C"
