// Code placement: what the host's own layout of blocks and functions needs to be told before code generation.
//
// Which module is placed by what, `use` says in a module flag, so that the decision is still there where a module is linked before it is
// compiled. Options of the host are process-wide: they are touched only where a module with that flag is compiled, once, and never where
// the user gave them.
#include "shim.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ProfileSummary.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include <mutex>
#include <string>
#include <vector>

using namespace llvm;

static constexpr StringLiteral Flag = "pleach.placement";

// A block is split off where it has less than half a sample: `use` makes that the count of the highest percentile.
static constexpr int SplitCutoff = 999999;

void pleachSetUnlessGiven(StringRef Name, StringRef Value) {
  auto &Options = cl::getRegisteredOptions();
  auto Found = Options.find(Name);
  if (Found != Options.end() && Found->second->getNumOccurrences() == 0)
    Found->second->addOccurrence(0, Name, Value);
}

static void setHostOptions() {
  // Block order by the extended travelling-salesman model (Newell and Pupyrev 2020) on top of the chains that the host
  // builds from probabilities; functions without a profile keep their order.
  pleachSetUnlessGiven("enable-ext-tsp-block-placement", "1");
  pleachSetUnlessGiven("ext-tsp-apply-without-profile", "0");
  pleachSetUnlessGiven("mfs-psi-cutoff", std::to_string(SplitCutoff));
  // Every linker places `.text.unlikely.*` apart; the host's own `.text.split.*` only lld does.
  pleachSetUnlessGiven("bbsections-cold-text-prefix", ".text.unlikely.");
}

static void setHostOptionsOnce() {
  static std::once_flag Once;
  std::call_once(Once, setHostOptions);
}

// A defined function; the order is that of `PlacedFunction` in src/ffi.rs.
struct PleachPlacedFunction {
  LLVMValueRef F;
  uint64_t Instructions;
  uint64_t Calls; // 0 where the profile says nothing
};

// Calls between functions, by their positions; the order is that of `PlacedCalls` in src/ffi.rs.
struct PleachPlacedCalls {
  uint64_t Caller, Callee, Count;
};

// An innermost loop; the order is that of `Loop` in src/ffi.rs.
struct PleachLoop {
  uint64_t Instructions;
  double Iterations, Entries;
};

// The alignment of a loop in a program that executes `Total` blocks; 1 where the host's own stands.
using AlignmentFn = uint32_t (*)(const PleachLoop *, double Total);

// Whether most iterations execute a block, as code generation sees it when it aligns.
static bool isInMostIterations(BlockFrequency Block, BlockFrequency Header) {
  return Block >= Header * BranchProbability(1, 5);
}

// Code generation looks for a loop's metadata where the loop is left if its latch does not leave it.
static void alignLoop(Loop &L, unsigned Alignment) {
  addStringMetadataToLoop(&L, "llvm.loop.align", Alignment);
  BasicBlock *Latch = L.getLoopLatch(), *Exiting = L.getExitingBlock();
  if (!Latch || !Exiting || Latch == Exiting)
    return;
  Instruction *T = Exiting->getTerminator();
  if (!T->getMetadata(LLVMContext::MD_loop))
    T->setMetadata(LLVMContext::MD_loop, L.getLoopID());
}

using PlacedFn = void (*)(void *To, const PleachPlacedFunction *, size_t, const PleachPlacedCalls *,
                          size_t);

extern "C" {

// For `use`: how this module is to be placed. Where modules are linked, the largest value counts.
void pleach_set_placement(LLVMModuleRef M, uint32_t Value) {
  unwrap(M)->setModuleFlag(Module::Max, Flag, Value);
}

// What `use` said; 0 where it said nothing.
uint32_t pleach_placement(LLVMModuleRef M) {
  auto *Value = mdconst::extract_or_null<ConstantInt>(unwrap(M)->getModuleFlag(Flag));
  return Value ? static_cast<uint32_t>(Value->getZExtValue()) : 0;
}

// For a linked program, whose code generation takes no plugin's target options.
void pleach_place_at_link(bool Split) {
  setHostOptionsOnce();
  if (Split)
    pleachSetUnlessGiven("enable-split-machine-functions", "1");
}

void pleach_place(void *Target, bool Split) {
  setHostOptionsOnce();
  TargetOptions &Options = static_cast<TargetMachine *>(Target)->Options;
  // The linker orders sections: functions need some of their own.
  Options.FunctionSections = true;
  if (Split)
    Options.EnableMachineFunctionSplitter = true;
}

// Whether loops may be aligned as the profile says: on processors that the model is of, and where the user did not say how.
bool pleach_may_align(void *Target) {
  auto *Machine = static_cast<TargetMachine *>(Target);
  return Machine->Options.LoopAlignment == 0 && Machine->getTargetTriple().isX86();
}

// Aligns a function's innermost loops as the profile says; returns how many differ from the host's.
uint32_t pleach_align_loops(LLVMValueRef V, AlignmentFn Decide) {
  Function &F = *unwrap<Function>(V);
  auto Entry = F.getEntryCount();
  std::unique_ptr<ProfileSummary> Summary(
      ProfileSummary::getFromMD(F.getParent()->getProfileSummary(/*IsCS=*/false)));
  DominatorTree DT(F);
  LoopInfo LI(DT);
  if (!Entry || !Summary || LI.empty())
    return 0;
  BranchProbabilityInfo BPI(F, LI);
  BlockFrequencyInfo BFI(F, BPI, LI);
  const double Calls = static_cast<double>(Entry->getCount()) /
                       static_cast<double>(std::max<uint64_t>(BFI.getEntryFreq().getFrequency(), 1));
  uint32_t Aligned = 0;
  for (Loop *L : LI.getLoopsInPreorder()) {
    // What the author of a loop says stands.
    if (!L->isInnermost() || findStringMetadataForLoop(L, "llvm.loop.align"))
      continue;
    BasicBlock *Header = L->getHeader();
    const BlockFrequency Iterations = BFI.getBlockFreq(Header);
    PleachLoop Known = {0, static_cast<double>(Iterations.getFrequency()) * Calls, 0};
    for (BasicBlock *BB : L->blocks())
      if (isInMostIterations(BFI.getBlockFreq(BB), Iterations))
        Known.Instructions += llvm::count_if(*BB, [](const Instruction &I) {
          return !isa<PHINode>(I) && !I.isDebugOrPseudoInst() && !I.isLifetimeStartOrEnd();
        });
    for (BasicBlock *From : predecessors(Header))
      if (!L->contains(From))
        Known.Entries += static_cast<double>(
                             (BFI.getBlockFreq(From) * BPI.getEdgeProbability(From, Header)).getFrequency()) *
                         Calls;
    uint32_t Alignment = Decide(&Known, static_cast<double>(Summary->getTotalCount()));
    if (Alignment > 1) {
      alignLoop(*L, Alignment);
      ++Aligned;
    }
  }
  return Aligned;
}

// How many blocks of a function code generation takes for never sampled, and splits off where it splits.
uint32_t pleach_unsampled_blocks(LLVMValueRef V) {
  Function &F = *unwrap<Function>(V);
  ProfileSummaryInfo PSI(*F.getParent());
  DominatorTree DT(F);
  LoopInfo LI(DT);
  BranchProbabilityInfo BPI(F, LI);
  BlockFrequencyInfo BFI(F, BPI, LI);
  return llvm::count_if(F, [&](const BasicBlock &BB) {
    auto Count = BFI.getBlockProfileCount(&BB);
    return Count && PSI.isColdCountNthPercentile(SplitCutoff, *Count);
  });
}

// The host's extended TSP takes an indirect branch's successor for one that can fall through, and spends its places behind the
// dispatches of interpreters on it. Functions that jump indirectly keep the order of the host's chains: it asks for nothing else than
// an entry count, of which the section's prefix stays.
void pleach_keep_chains(LLVMValueRef V) {
  Function &F = *unwrap<Function>(V);
  auto Indirect = [](const BasicBlock &BB) { return isa<IndirectBrInst>(BB.getTerminator()); };
  if (!F.getEntryCount() || !llvm::any_of(F, Indirect))
    return;
  ProfileSummaryInfo PSI(*F.getParent());
  DominatorTree DT(F);
  LoopInfo LI(DT);
  BranchProbabilityInfo BPI(F, LI);
  BlockFrequencyInfo BFI(F, BPI, LI);
  if (!F.getSectionPrefix() && PSI.isFunctionHotInCallGraph(&F, BFI))
    F.setSectionPrefix("hot");
  F.setMetadata(LLVMContext::MD_prof, nullptr);
}

// Interpreters predict by having a dispatch of their own behind each operation. The optimiser keeps one for all; code generation copies it back, as
// the last thing but layout, into blocks that end in a plain jump to it, and only while it is short. Two things stand in the way:
//
// - Counts of irreducible headers, which every label of a computed goto is given. They are of the source's graph. Where the optimiser has changed
//   it, or has nothing but zeros, the dispatch seems to run less often than what it leads to: what operations have in common is computed in it
//   (MachineCSE), and it gets too long.
// - Tail merging, which makes one dispatch of a few before the copies are made.
void pleach_keep_dispatches(LLVMModuleRef M) {
  // As many as code generation looks at before it calls a block's edges many (-tail-dup-succ-size).
  constexpr unsigned MinLabels = 16;
  for (Function &F : *unwrap(M)) {
    unsigned Labels = 0;
    for (const BasicBlock &BB : F)
      if (auto *Goto = dyn_cast<IndirectBrInst>(BB.getTerminator()))
        Labels = std::max(Labels, Goto->getNumDestinations());
    if (Labels == 0)
      continue;
    for (BasicBlock &BB : F)
      BB.getTerminator()->setMetadata(LLVMContext::MD_irr_loop, nullptr);
    // There is no such option of a function: the whole module goes without, which adds to its size what the dispatches do, and some more.
    if (Labels > MinLabels && !F.hasOptSize() && !F.hasOptNone())
      pleachSetUnlessGiven("enable-tail-merge", "0");
  }
}

// Tells a module's functions, and the calls that the host's call-graph profile has between them: those after inlining.
void pleach_placed_functions(LLVMModuleRef Ref, PlacedFn Tell, void *To) {
  Module &M = *unwrap(Ref);
  std::vector<PleachPlacedFunction> Functions;
  DenseMap<const Function *, uint64_t> Position;
  for (Function &F : M) {
    if (F.isDeclarationForLinker())
      continue;
    auto Count = F.getEntryCount();
    Position[&F] = Functions.size();
    Functions.push_back({wrap(&F), F.getInstructionCount(), Count ? Count->getCount() : 0});
  }
  std::vector<PleachPlacedCalls> Calls;
  auto Place = [&](const MDOperand &Of) {
    auto *Value = dyn_cast_or_null<ValueAsMetadata>(Of.get());
    auto *F = Value ? dyn_cast<Function>(Value->getValue()->stripPointerCasts()) : nullptr;
    return F ? Position.find(F) : Position.end();
  };
  if (auto *Profile = dyn_cast_or_null<MDTuple>(M.getModuleFlag("CG Profile")))
    for (const MDOperand &Operand : Profile->operands()) {
      auto *Edge = cast<MDNode>(Operand);
      auto Caller = Place(Edge->getOperand(0)), Callee = Place(Edge->getOperand(1));
      if (Caller != Position.end() && Callee != Position.end())
        Calls.push_back({Caller->second, Callee->second,
                         mdconst::extract<ConstantInt>(Edge->getOperand(2))->getZExtValue()});
    }
  Tell(To, Functions.data(), Functions.size(), Calls.data(), Calls.size());
}

// Puts a function behind all others of its module.
void pleach_move_to_end(LLVMValueRef F) {
  Function *Fn = unwrap<Function>(F);
  Module *M = Fn->getParent();
  M->getFunctionList().splice(M->end(), M->getFunctionList(), Fn->getIterator());
}

} // extern "C"
