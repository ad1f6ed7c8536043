// Registration, options and diagnostics: what a pass plugin needs from the PassBuilder.
// Decisions are made in Rust (src/); every function here is called from, or calls into, src/ffi.rs.
#include "pleach.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Instrumentation/ControlHeightReduction.h"
#include "llvm/Transforms/Instrumentation/PGOInstrumentation.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/InstSimplifyPass.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace {

cl::opt<bool> Annotate("pleach-annotate",
                       cl::desc("Give IR blocks identifiers that emitted code carries"));
cl::opt<std::string> UseProfile("pleach-use", cl::value_desc("profile"),
                         cl::desc("Optimise with this pleach profile"));
cl::opt<std::string> AnchorName("pleach-anchor", cl::init(""), cl::value_desc("early|late"),
                                cl::desc("Where in the pipeline IR is identified (default: early)"));
cl::opt<std::string> Instrument("pleach-instrument", cl::value_desc("paths|edges"),
                                cl::desc("Count every path, or every edge, exactly"));
cl::opt<unsigned> Iterations("pleach-iterations", cl::init(1),
                             cl::desc("Consecutive paths of an activation that are counted together (1 to 4)"));
cl::opt<std::string> Weights("pleach-weights", cl::value_desc("profile"),
                             cl::desc("Place counters by this pleach profile instead of by static estimates"));
cl::opt<bool> Summary("pleach-summary",
                      cl::desc("Print one line per module on what was done with the profile"));
cl::opt<uint64_t> RandomProfile("pleach-random", cl::Hidden, cl::value_desc("seed"),
                                cl::desc("Optimise with random profiles instead of recorded ones"));
cl::opt<uint64_t> RandomPaths("pleach-random-paths", cl::Hidden, cl::value_desc("seed"),
                              cl::desc("Give the paths of each function each other's counts"));
cl::opt<bool> Promote("pleach-icall-promotion", cl::init(true), cl::Hidden,
                      cl::desc("Promote indirect calls with profiled targets"));
cl::opt<bool> SmallFirst("pleach-small-callees-first", cl::init(true), cl::Hidden,
                         cl::desc("Inline callees as small as their calls before what the profile says is inlined"));
cl::opt<bool> ReduceHeight("pleach-control-height-reduction", cl::init(true), cl::Hidden,
                           cl::desc("Run control-height reduction at -O3, as -fprofile-use does"));
cl::opt<bool> Recurrences("pleach-recurrences", cl::init(true), cl::Hidden,
                          cl::desc("Make branches of selects that loops wait for"));
cl::opt<bool> Selects("pleach-selects", cl::init(true), cl::Hidden,
                      cl::desc("Have selects formed of branches that are often mispredicted"));
cl::opt<bool> AnySelects("pleach-selects-aggressive", cl::Hidden,
                         cl::desc("Do without every branch that can be done without, for tests"));
cl::opt<bool> PlaceCode("pleach-placement", cl::init(true), cl::Hidden,
                        cl::desc("Order blocks and functions, and split functions, by the profile"));
cl::opt<bool> AlignLoops("pleach-align-loops", cl::init(false), cl::Hidden,
                         cl::desc("Align loops to windows of fetch where the profile says that it pays"));

cl::opt<bool> Superblocks("pleach-superblocks", cl::init(true),
                          cl::desc("Form superblocks along the profile's paths (default: on)"));
cl::opt<unsigned> SuperblockStage(
    "pleach-superblock-stage", cl::init(2), cl::Hidden,
    cl::desc("Where they are formed: 0 before inlining, 1 before vectorisation, 2 in the end"));
cl::opt<double> SuperblockPrice(
    "pleach-superblock-price", cl::init(-1), cl::Hidden,
    cl::desc("Share of all executions that a copied instruction must save, instead of the default"));
cl::opt<bool> Aggressive("pleach-superblocks-aggressive", cl::Hidden,
                         cl::desc("Form superblocks wherever they can be, for tests"));
cl::opt<bool> Verify("pleach-verify", cl::Hidden,
                     cl::desc("Check each function that superblocks changed, for tests"));

// The order is that of `Stage` in src/lib.rs.
enum Stage : uint32_t { EarlySimplification = 0, OptimizerLast = 1, OptimizerEarly = 2 };

} // namespace

// Text owned by the host, alive as long as the options are.
struct PleachText {
  const char *Data;
  size_t Size;
};

// Implemented in Rust and handed over at registration, so that the plugin exports one symbol only.
// Returns true when the module was changed.
using RunFn = bool (*)(LLVMModuleRef, void *Context, uint32_t Stage, uint32_t Phase);

// True where clang would schedule its own profile-only passes: a profile is being used by us.
using UsesProfileFn = bool (*)();

namespace {

struct PleachPass : PassInfoMixin<PleachPass> {
  RunFn Run;
  Stage At;
  uint32_t Phase;

  PleachPass(RunFn Run, Stage At, ThinOrFullLTOPhase P)
      : Run(Run), At(At), Phase(static_cast<uint32_t>(P)) {}

  static bool isRequired() { return true; } // also under optnone and opt-bisect
  static StringRef name() { return "PleachPass"; }

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    PleachRun Context{MAM};
    return Run(wrap(&M), &Context, At, Phase) ? PreservedAnalyses::none()
                                              : PreservedAnalyses::all();
  }

  void printPipeline(raw_ostream &OS, function_ref<StringRef(StringRef)>) {
    OS << "pleach";
  }
};

// Keeps counters of loops in registers, once nothing is inlined into a function any more, and before loops are vectorised.
struct PleachPromotePass : PassInfoMixin<PleachPromotePass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    return pleachPromoteCounts(F) ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

// What copies of blocks leave to do: values that are known now, loads that are there already, branches that are decided.
// Nothing that would merge copies again.
struct PleachCleanUpPass : PassInfoMixin<PleachCleanUpPass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    if (!F.hasFnAttribute(PleachUnfoldedAttribute))
      return PreservedAnalyses::all();
    F.removeFnAttr(PleachUnfoldedAttribute);
    FunctionPassManager FPM;
    FPM.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
    FPM.addPass(CorrelatedValuePropagationPass());
    FPM.addPass(InstSimplifyPass());
    FPM.addPass(ADCEPass());
    FPM.run(F, FAM);
    // Not SimplifyCFG: it also removes empty blocks, where φs of seldom executed blocks take their values. Without them, the
    // values would be computed before each branch there.
    for (BasicBlock &BB : F)
      ConstantFoldTerminator(&BB, /*DeleteDeadConditions=*/true);
    removeUnreachableBlocks(F);
    for (BasicBlock &BB : llvm::make_early_inc_range(F))
      MergeBlockIntoPredecessor(&BB);
    return PreservedAnalyses::none();
  }
};

} // namespace

static bool isPostLink(ThinOrFullLTOPhase P) {
  return P == ThinOrFullLTOPhase::ThinLTOPostLink || P == ThinOrFullLTOPhase::FullLTOPostLink;
}

extern "C" {

void pleach_register(PassBuilder *PB, RunFn Run, UsesProfileFn UsesProfile) {
  PB->registerPipelineEarlySimplificationEPCallback(
      [Run, UsesProfile](ModulePassManager &MPM, OptimizationLevel Level,
                         ThinOrFullLTOPhase P) {
        MPM.addPass(PleachPass(Run, EarlySimplification, P));
        if (UsesProfile() && SmallFirst && Level != OptimizationLevel::O0 && !isPostLink(P))
          pleachInlineSmallCallees(MPM, P);
        if (UsesProfile())
          pleachTellInliner(MPM);
        // clang schedules these only for its own profiles. As there, promotion runs before the
        // inliner so that promoted calls can be inlined.
        if (UsesProfile() && Promote && Level != OptimizationLevel::O0 &&
            P != ThinOrFullLTOPhase::FullLTOPostLink)
          MPM.addPass(PGOIndirectCallPromotion(
              /*InLTO=*/P == ThinOrFullLTOPhase::ThinLTOPostLink, /*SamplePGO=*/false));
      });
  PB->registerScalarOptimizerLateEPCallback(
      [UsesProfile](FunctionPassManager &FPM, OptimizationLevel Level) {
        if (UsesProfile() && ReduceHeight && Level == OptimizationLevel::O3)
          FPM.addPass(ControlHeightReductionPass());
      });
  PB->registerVectorizerStartEPCallback([](FunctionPassManager &FPM, OptimizationLevel) {
    FPM.addPass(PleachPromotePass());
  });
  PB->registerOptimizerLastEPCallback(
      [Run](ModulePassManager &MPM, OptimizationLevel, ThinOrFullLTOPhase P) {
        MPM.addPass(PleachPass(Run, OptimizerLast, P));
        MPM.addPass(createModuleToFunctionPassAdaptor(PleachCleanUpPass()));
      });
  PB->registerOptimizerEarlyEPCallback(
      [Run](ModulePassManager &MPM, OptimizationLevel Level, ThinOrFullLTOPhase P) {
        if (Level != OptimizationLevel::O0)
          MPM.addPass(PleachPass(Run, OptimizerEarly, P));
      });
  PB->registerFullLinkTimeOptimizationLastEPCallback(
      [Run](ModulePassManager &MPM, OptimizationLevel) {
        MPM.addPass(PleachPass(Run, OptimizerLast, ThinOrFullLTOPhase::FullLTOPostLink));
      });
  PB->registerPipelineParsingCallback([Run](StringRef Name, ModulePassManager &MPM,
                                            ArrayRef<PassBuilder::PipelineElement>) {
    if (Name != "pleach")
      return false;
    MPM.addPass(PleachPass(Run, EarlySimplification, ThinOrFullLTOPhase::None));
    return true;
  });
}

uint32_t pleach_plugin_api_version() { return LLVM_PLUGIN_API_VERSION; }

// The layout that the Rust mirror of PassPluginLibraryInfo must have.
size_t pleach_plugin_info_size() { return sizeof(PassPluginLibraryInfo); }

bool pleach_option_annotate() { return Annotate; }
bool pleach_option_summary() { return Summary; }
PleachText pleach_option_use() { return {UseProfile.data(), UseProfile.size()}; }
uint64_t pleach_option_random() { return RandomProfile; }
uint64_t pleach_option_random_paths() { return RandomPaths; }
PleachText pleach_option_instrument() { return {Instrument.data(), Instrument.size()}; }
unsigned pleach_option_iterations() { return Iterations; }
PleachText pleach_option_weights() { return {Weights.data(), Weights.size()}; }
bool pleach_option_superblocks() { return Superblocks; }
unsigned pleach_option_superblock_stage() { return SuperblockStage; }
double pleach_option_superblock_price() { return SuperblockPrice; }
bool pleach_option_aggressive() { return Aggressive; }
bool pleach_option_verify() { return Verify; }
bool pleach_option_placement() { return PlaceCode; }
bool pleach_option_recurrences() { return Recurrences; }
bool pleach_option_selects() { return Selects; }
bool pleach_option_any_selects() { return AnySelects; }
bool pleach_option_align_loops() { return AlignLoops; }
PleachText pleach_option_anchor() { return {AnchorName.data(), AnchorName.size()}; }

bool pleach_module_is_elf(LLVMModuleRef M) {
  return unwrap(M)->getTargetTriple().isOSBinFormatELF();
}

// Reports through the module's own diagnostic handler, so that clang and lld print it in their
// usual form and set their usual exit status.
void pleach_diagnose(LLVMModuleRef M, const char *Text, size_t Size, bool Fatal) {
  LLVMContext &C = unwrap(M)->getContext();
  C.diagnose(DiagnosticInfoGeneric(StringRef(Text, Size), Fatal ? DS_Error : DS_Warning));
}

void pleach_print(const char *Text, size_t Size) { errs() << StringRef(Text, Size) << '\n'; }

// Whether somebody asked for remarks of ours: building them costs time.
bool pleach_remarks_enabled(LLVMModuleRef M) {
  LLVMContext &C = unwrap(M)->getContext();
  return C.getLLVMRemarkStreamer() || C.getDiagHandlerPtr()->isAnyRemarkEnabled("pleach");
}

// `-Rpass=pleach` where Passed, `-Rpass-missed=pleach` where not.
void pleach_remark(LLVMValueRef F, bool Passed, const char *Name, const char *Text, size_t Size) {
  Function *Fn = unwrap<Function>(F);
  OptimizationRemarkEmitter ORE(Fn);
  StringRef Message(Text, Size);
  DebugLoc Loc = Fn->getSubprogram() ? DebugLoc(DILocation::get(
                                           Fn->getContext(), Fn->getSubprogram()->getScopeLine(), 0,
                                           Fn->getSubprogram()))
                                     : DebugLoc();
  const BasicBlock *Entry = &Fn->getEntryBlock();
  if (Passed)
    ORE.emit(OptimizationRemark("pleach", Name, Loc, Entry) << Message);
  else
    ORE.emit(OptimizationRemarkMissed("pleach", Name, Loc, Entry) << Message);
}

} // extern "C"
