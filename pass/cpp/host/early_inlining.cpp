// Inlines what must be inlined before blocks are identified, so that each place has counts of its own: the parameters of
// such functions are often constants, and decide which of their blocks are executed. clang does the same before it
// instruments.
//
// Inlines small callees before the profile is revealed to the inliner, as clang does before it applies its own
// profiles.
//
// The inliner works bottom-up and accepts large callees for hot calls. If it inlined a large function into the cold
// part of a small one, the small one would become too large for its own callers.
//
// Local functions with one call site are left for the inliner that knows the profile: otherwise they would be inlined
// whatever their size and however rarely they run.
#include "pleach.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/AggressiveInstCombine/AggressiveInstCombine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/IPO/SCCP.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

// Marks functions that are `noinline` only until the profile is revealed.
static constexpr char LaterAttribute[] = "pleach-inline-later";

// Marks functions that call what must be inlined, until they are simplified.
static constexpr char CallerAttribute[] = "pleach-mandatory-caller";

namespace {

struct PleachMarkCallersPass : PassInfoMixin<PleachMarkCallersPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    for (Function &F : M)
      for (Instruction &I : instructions(F)) {
        const auto *Call = dyn_cast<CallBase>(&I);
        const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
        if (Callee && !Callee->isDeclaration() && Call->hasFnAttr(Attribute::AlwaysInline)) {
          F.addFnAttr(CallerAttribute);
          break;
        }
      }
    return PreservedAnalyses::all();
  }
};

// Makes one load of bytes that are read one by one, as the host does before it inlines. Once they are inlined beside
// others, passes share single bytes of overlapping reads, and no later pass makes one load of the rest.
struct PleachMergeLoadsPass : PassInfoMixin<PleachMergeLoadsPass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    return F.hasFnAttribute(Attribute::AlwaysInline) ? AggressiveInstCombinePass().run(F, FAM)
                                                     : PreservedAnalyses::all();
  }
};

// As the host simplifies every function before the early anchor.
struct PleachSimplifyCallersPass : PassInfoMixin<PleachSimplifyCallersPass> {
  static bool isRequired() { return true; } // otherwise the attributes would remain

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    if (!F.hasFnAttribute(CallerAttribute))
      return PreservedAnalyses::all();
    F.removeFnAttr(CallerAttribute);
    FunctionPassManager FPM;
    FPM.addPass(SimplifyCFGPass());
    FPM.addPass(SROAPass(SROAOptions::ModifyCFG));
    FPM.addPass(EarlyCSEPass());
    FPM.addPass(SimplifyCFGPass());
    return FPM.run(F, FAM);
  }
};

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

// LLVM reads it at each call.
static constexpr char ThresholdAttribute[] = "function-inline-threshold";

static void setInlineThreshold(CallBase &Call, int Threshold) {
  Call.addFnAttr(Attribute::get(Call.getContext(), ThresholdAttribute, std::to_string(Threshold)));
}

// The function of the module that an instruction calls.
static Function *calledHere(Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  return Callee && !Callee->isDeclaration() ? Callee : nullptr;
}

static bool callsAny(Function &F) { return any_of(instructions(F), calledHere); }

// Whether a function has samples, from which its counts are estimated.
static bool isSampled(const Function &F) {
  return !F.isDeclaration() && F.getEntryCount() && !F.hasFnAttribute(PleachUnsampledAttribute);
}

// The share of a function's executions below which a call is cold without a profile.
static constexpr double ColdShare = 0.02;

// Small callees make what calls them larger. Where that was not sampled, only those that are hardly larger than their
// calls are inlined, until the profile is revealed.
struct PleachLowerEarlyThresholdsPass : PassInfoMixin<PleachLowerEarlyThresholdsPass> {
  int Threshold;

  PleachLowerEarlyThresholdsPass(int Threshold) : Threshold(Threshold) {}

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM) {
    if (!callsAny(F))
      return PreservedAnalyses::all();
    // Frequencies are computed for what was sampled only.
    BlockFrequencyInfo *Frequencies = isSampled(F) ? &FAM.getResult<BlockFrequencyAnalysis>(F) : nullptr;
    const double Cold = Frequencies ? double(Frequencies->getEntryFreq().getFrequency()) * ColdShare : 0;
    for (BasicBlock &B : F)
      if (!Frequencies || double(Frequencies->getBlockFreq(&B).getFrequency()) < Cold)
        for (Instruction &I : B)
          if (Function *Callee = calledHere(I); Callee && !Callee->hasFnAttribute(Attribute::InlineHint))
            setInlineThreshold(cast<CallBase>(I), Threshold);
    return PreservedAnalyses::all();
  }
};

// These thresholds are for the early inliner only.
struct PleachForgetThresholdsPass : PassInfoMixin<PleachForgetThresholdsPass> {
  static bool isRequired() { return true; } // otherwise the attributes would remain

  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    for (Instruction &I : instructions(F))
      if (auto *Call = dyn_cast<CallBase>(&I))
        Call->removeFnAttr(ThresholdAttribute);
    return PreservedAnalyses::all();
  }
};

// LLVM's threshold of calls that are neither hot nor cold, at -O2.
static constexpr int InlineThreshold = 225;

// Calls in a function without samples are no hot calls, wherever the function is inlined. LLVM would multiply the count
// of the call that it replaces by guesses of the iterations of its loops: from one sample, three such loops make a hot
// call, whose callee may be ten times as large. In a recursive parser each rule is then copied into each other.
static void capInlineThresholds(Function &F, BlockFrequencyInfo &Frequencies) {
  const double Entry = double(Frequencies.getEntryFreq().getFrequency());
  for (BasicBlock &B : F) {
    // Cold ones stay cold: LLVM knows them by their counts.
    if (F.getEntryCount() && double(Frequencies.getBlockFreq(&B).getFrequency()) < Entry / 2)
      continue;
    for (Instruction &I : B)
      if (Function *Callee = calledHere(I); Callee && !Callee->hasFnAttribute(Attribute::InlineHint) &&
                                            !Callee->hasFnAttribute(Attribute::Cold))
        setInlineThreshold(cast<CallBase>(I), InlineThreshold);
  }
}

// LLVM's threshold for cold calls.
static constexpr int ColdInlineThreshold = 45;

// Whether a function is inlined where it is called, because that is its only call.
static bool isInlinedOnlyCall(const Function &F) {
  const auto *Call = F.hasOneUse() ? dyn_cast<CallBase>(*F.user_begin()) : nullptr;
  return Call && Call->hasFnAttr(PleachOnlyCallAttribute);
}

// The threshold outside loops of functions that were not executed. With LLVM's own for code that is optimised for size,
// 50, sqlite's code is three tenths smaller; but cscope, where training made no search, executes 6 % more instructions
// when it searches.
static constexpr int NotExecutedInlineThreshold = 150;

// Functions that were not executed, and that such functions call in loops, directly or through others.
using FunctionSet = SmallPtrSet<const Function *, 16>;

static FunctionSet calledInLoops(ArrayRef<Function *> NotExecuted, FunctionAnalysisManager &FAM) {
  FunctionSet InLoops;
  const FunctionSet Known(NotExecuted.begin(), NotExecuted.end());
  SmallVector<Function *, 16> Work;
  // Callees from blocks that run more often than `Executions` times in each run of their function.
  const auto Reach = [&](Function &F, double Executions) {
    BlockFrequencyInfo &Frequencies = FAM.getResult<BlockFrequencyAnalysis>(F);
    const double Least = double(Frequencies.getEntryFreq().getFrequency()) * Executions;
    for (BasicBlock &B : F)
      if (double(Frequencies.getBlockFreq(&B).getFrequency()) > Least)
        for (Instruction &I : B)
          if (Function *Callee = calledHere(I); Callee && Known.contains(Callee) && InLoops.insert(Callee).second)
            Work.push_back(Callee);
  };
  for (Function *F : NotExecuted)
    Reach(*F, 1);
  while (!Work.empty())
    Reach(*Work.pop_back_val(), ColdShare);
  return InLoops;
}

// A function that was not executed may be what the program does with another input, so that it is compiled for speed. But
// all such functions together are most of a large program, and what is inlined into them makes them larger: whichever of
// them runs after all then needs more of the instruction cache. If such a function turns out to take time, most of it is
// in its loops, and in what these call.
static void inlineLess(Function &F, BlockFrequencyInfo &Frequencies, bool IsCalledInLoop) {
  const double Entry = double(Frequencies.getEntryFreq().getFrequency());
  const double Least = IsCalledInLoop ? Entry * ColdShare : Entry;
  const int Threshold = isInlinedOnlyCall(F) ? ColdInlineThreshold : NotExecutedInlineThreshold;
  for (BasicBlock &B : F) {
    const bool IsInLoop = double(Frequencies.getBlockFreq(&B).getFrequency()) > Least;
    for (Instruction &I : B) {
      const Function *Callee = calledHere(I);
      if (!Callee || Callee->hasFnAttribute(Attribute::Cold))
        continue;
      if (!IsInLoop)
        setInlineThreshold(cast<CallBase>(I), Threshold);
      else if (!Callee->hasFnAttribute(Attribute::InlineHint))
        setInlineThreshold(cast<CallBase>(I), InlineThreshold);
    }
  }
}

// Calls that few executions of their function reach are cold, unless they are hot in the whole program. With a profile
// LLVM only compares them with the whole program: in a hot function, a callee that is called once in a thousand times
// is inlined, and its registers are saved each time. In a function that is not in the profile, it regards no call as
// cold, and inlines more than without a profile.
static void lowerInlineThresholds(Function &F, BlockFrequencyInfo &Frequencies, const ProfileSummaryInfo &Summary) {
  const double Entry = double(Frequencies.getEntryFreq().getFrequency());
  for (BasicBlock &B : F) {
    if (double(Frequencies.getBlockFreq(&B).getFrequency()) >= Entry * ColdShare)
      continue;
    auto Count = Frequencies.getBlockProfileCount(&B);
    if (F.getEntryCount() && (!Count || Summary.isHotCount(*Count)))
      continue;
    for (Instruction &I : B)
      if (calledHere(I))
        setInlineThreshold(cast<CallBase>(I), ColdInlineThreshold);
  }
}

// Each function is entered at least as often as its calls are executed. Estimates of the two come from different samples.
// For each call that LLVM inlines, it subtracts the call's count from the callee's entries: where too few are left, what
// is still called appears cold, is not inlined, and is placed and compiled as cold code.
//
// Callees without samples that were executed count, too: what is inlined into them may have samples. Those that were
// executed rarely keep their count of 1, and those that were not executed their 0.
static void raiseEntryCount(Function &F, uint64_t Calls) {
  const auto Entries = F.getEntryCount();
  if (Entries && Entries->getCount() != 1 && Entries->getCount() < Calls && !F.hasFnAttribute(Attribute::Cold))
    F.setEntryCount(Calls);
}

// Callers before callees, since the count of a call is in proportion to its function's entries. Functions of a strongly
// connected component of the call graph are raised by calls from outside first, then once by each other's.
static void raiseEntryCounts(Module &M, FunctionAnalysisManager &FAM) {
  CallGraph Graph(M);
  SmallVector<SmallVector<Function *, 1>, 0> Components;
  for (auto Component = scc_begin(&Graph); !Component.isAtEnd(); ++Component) {
    Components.emplace_back();
    for (CallGraphNode *Node : *Component)
      if (Function *F = Node->getFunction(); F && !F->isDeclaration())
        Components.back().push_back(F);
  }
  DenseMap<Function *, uint64_t> Calls;
  for (ArrayRef<Function *> Component : reverse(Components)) {
    for (Function *F : Component)
      raiseEntryCount(*F, Calls.lookup(F));
    for (Function *F : Component) {
      if (!isSampled(*F) || !callsAny(*F))
        continue;
      BlockFrequencyInfo &Frequencies = FAM.getResult<BlockFrequencyAnalysis>(*F);
      for (BasicBlock &B : *F)
        for (Instruction &I : B)
          if (Function *Callee = calledHere(I); Callee && Callee != F)
            Calls[Callee] += Frequencies.getBlockProfileCount(&B).value_or(0);
    }
    if (Component.size() > 1)
      for (Function *F : Component)
        raiseEntryCount(*F, Calls.lookup(F));
  }
}

struct PleachRaiseEntryCountsPass : PassInfoMixin<PleachRaiseEntryCountsPass> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    raiseEntryCounts(M, MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager());
    return PreservedAnalyses::all();
  }
};

// Reveals the profile to the inliner.
struct PleachEnableProfileSummaryPass : PassInfoMixin<PleachEnableProfileSummaryPass> {
  static bool isRequired() { return true; } // otherwise the attributes would remain

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    ProfileSummaryInfo &Summary = MAM.getResult<ProfileSummaryAnalysis>(M);
    Summary.refresh();
    auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
    raiseEntryCounts(M, FAM);
    SmallVector<Function *, 16> NotExecuted;
    for (Function &F : M)
      if (F.hasFnAttribute(PleachNotExecutedAttribute) && !F.isDeclaration())
        NotExecuted.push_back(&F);
    const FunctionSet CalledInLoops = calledInLoops(NotExecuted, FAM);
    for (Function &F : M) {
      if (F.hasFnAttribute(PleachNotExecutedAttribute)) {
        F.removeFnAttr(PleachNotExecutedAttribute);
        if (callsAny(F))
          inlineLess(F, FAM.getResult<BlockFrequencyAnalysis>(F), CalledInLoops.contains(&F));
      } else if (!F.isDeclaration() && !F.hasOptSize() && callsAny(F)) {
        BlockFrequencyInfo &Frequencies = FAM.getResult<BlockFrequencyAnalysis>(F);
        const bool IsUnsampled = F.hasFnAttribute(PleachUnsampledAttribute);
        if (IsUnsampled)
          capInlineThresholds(F, Frequencies);
        if (!IsUnsampled || !F.getEntryCount())
          lowerInlineThresholds(F, Frequencies, Summary);
      }
    }
    // After all thresholds: a callee that is hot elsewhere gets no hint where nothing is known.
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

// What must be inlined (`alwaysinline`) is inlined before its callee is simplified, and a loop that this would have
// prepared is then not vectorised. Calls that are inlined because they are a function's only ones are marked as such when
// the bottom-up inliner has simplified the function. A higher threshold would not do: LLVM stops at its
// own, before it reads the call's.
struct PleachInlineOnlyCallsPass : PassInfoMixin<PleachInlineOnlyCallsPass> {
  static bool isRequired() { return true; } // otherwise the attributes would remain

  PreservedAnalyses run(LazyCallGraph::SCC &C, CGSCCAnalysisManager &, LazyCallGraph &, CGSCCUpdateResult &) {
    for (LazyCallGraph::Node &N : C)
      for (User *U : N.getFunction().users())
        if (auto *Call = dyn_cast<CallBase>(U); Call && Call->hasFnAttr(PleachOnlyCallAttribute)) {
          Call->removeFnAttr(PleachOnlyCallAttribute);
          Call->addFnAttr(Attribute::AlwaysInline);
        }
    return PreservedAnalyses::all();
  }
};

// Weights that came from where they are: their marks would have them removed where the function is inlined, as weights
// from elsewhere. What was inlined into the function counts as its own.
struct PleachKeepWeightsPass : PassInfoMixin<PleachKeepWeightsPass> {
  PreservedAnalyses run(Function &F, FunctionAnalysisManager &) {
    if (F.hasFnAttribute(PleachKeepsWeightsAttribute))
      for (Instruction &I : instructions(F))
        I.setMetadata(PleachSampledMetadata, nullptr);
    return PreservedAnalyses::all();
  }
};

} // namespace

void pleachInlineMandatory(ModulePassManager &MPM) {
  MPM.addPass(createModuleToFunctionPassAdaptor(PleachMergeLoadsPass()));
  MPM.addPass(PleachMarkCallersPass());
  MPM.addPass(AlwaysInlinerPass());
  MPM.addPass(createModuleToFunctionPassAdaptor(PleachSimplifyCallersPass()));
}

// The instruction combiner, which would lose the lengths of memory operations.
static void addCombiner(FunctionPassManager &FPM, ThinOrFullLTOPhase Phase) {
  if (pleachHostPasses().SpecialiseLengths)
    FPM.addPass(PleachKeepLengthsPass(Phase));
  FPM.addPass(InstCombinePass());
}

void pleachInlineSmallCallees(ModulePassManager &MPM, ThinOrFullLTOPhase Phase, const PleachLimits &Limits) {
  InlineParams Params;
  Params.DefaultThreshold = Limits.EarlyInlineThreshold;
  Params.HintThreshold = Limits.EarlyInlineHintThreshold;
  ModuleInlinerWrapperPass Inliner(Params, /*MandatoryFirst=*/true,
                                   InlineContext{Phase, InlinePass::EarlyInliner});
  // As the host does before it inlines: where SimplifyCFG comes first, selects hide how comparisons could be simplified
  // (potrace: 2 % of its instructions), and which values an arm can have: that of an absolute value is not negative.
  // Functions are specialised for their arguments later, as without a profile.
  MPM.addPass(IPSCCPPass(IPSCCPOptions(/*AllowFuncSpec=*/false)));
  FunctionPassManager Before;
  addCombiner(Before, Phase);
  Before.addPass(SimplifyCFGPass(SimplifyCFGOptions().convertSwitchRangeToICmp(true)));
  MPM.addPass(createModuleToFunctionPassAdaptor(std::move(Before)));

  FunctionPassManager After;
  After.addPass(SROAPass(SROAOptions::ModifyCFG));
  After.addPass(EarlyCSEPass());
  After.addPass(SimplifyCFGPass(SimplifyCFGOptions().convertSwitchRangeToICmp(true)));
  addCombiner(After, Phase);
  After.addPass(AggressiveInstCombinePass()); // as PleachMergeLoadsPass
  After.addPass(PleachKeepWeightsPass());
  Inliner.getPM().addPass(createCGSCCToFunctionPassAdaptor(std::move(After)));
  MPM.addPass(PleachRaiseEntryCountsPass());
  MPM.addPass(createModuleToFunctionPassAdaptor(PleachLowerEarlyThresholdsPass(Limits.EarlyInlineColdThreshold)));
  MPM.addPass(PleachLeaveOnlyCallsPass());
  MPM.addPass(std::move(Inliner));
  MPM.addPass(createModuleToFunctionPassAdaptor(PleachForgetThresholdsPass()));
  MPM.addPass(GlobalDCEPass());
}

void pleachAfterInlining(CGSCCPassManager &CGPM) {
  CGPM.addPass(createCGSCCToFunctionPassAdaptor(PleachKeepWeightsPass()));
  CGPM.addPass(PleachInlineOnlyCallsPass());
}

void pleachRaiseEntryCounts(ModulePassManager &MPM) { MPM.addPass(PleachRaiseEntryCountsPass()); }

void pleachEnableProfileSummary(ModulePassManager &MPM) { MPM.addPass(PleachEnableProfileSummaryPass()); }
