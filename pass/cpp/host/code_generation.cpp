// Options and attributes that control the layout of code during code generation.
#include "pleach.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ProfileSummaryInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ProfileSummary.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

// Whether a sufficient share of iterations executes a block: the criterion of LLVM's block alignment.
static bool isInMostIterations(BlockFrequency Block, BlockFrequency Header) {
  return Block >= Header * BranchProbability(1, 5);
}

// If the latch is not an exiting block, code generation looks for the loop's metadata at the exiting block.
static void alignLoop(Loop &L, unsigned Alignment) {
  addStringMetadataToLoop(&L, "llvm.loop.align", Alignment);
  BasicBlock *Latch = L.getLoopLatch(), *Exiting = L.getExitingBlock();
  if (!Latch || !Exiting || Latch == Exiting)
    return;
  Instruction *T = Exiting->getTerminator();
  if (!T->getMetadata(LLVMContext::MD_loop))
    T->setMetadata(LLVMContext::MD_loop, L.getLoopID());
}

extern "C" {

void pleach_set_target_options(void *Target, bool Split) {
  TargetOptions &Options = static_cast<TargetMachine *>(Target)->Options;
  // The linker orders sections, so each function needs its own.
  Options.FunctionSections = true;
  if (Split)
    Options.EnableMachineFunctionSplitter = true;
}

// Whether LLVM assembles its output. Other assemblers do not know all of its directives.
bool pleach_assembles_itself(void *Target) { return !static_cast<TargetMachine *>(Target)->Options.DisableIntegratedAS; }

// Whether debug information is emitted. What identifies inlined code here is none.
bool pleach_emits_debug_info(LLVMModuleRef M) { return !unwrap(M)->debug_compile_units().empty(); }

// Whether loops may be aligned by the profile: on processors that the model describes, unless the user gave an
// alignment.
bool pleach_may_align(void *Target) {
  auto *Machine = static_cast<TargetMachine *>(Target);
  return Machine->Options.LoopAlignment == 0 && Machine->getTargetTriple().isX86();
}

// Aligns a function's innermost loops by the profile; returns how many alignments differ from LLVM's.
uint32_t pleach_align_loops(LLVMValueRef V, PleachAlignmentFn Decide) {
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
    // The loop's author takes precedence.
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

// LLVM's ext-TSP layout treats successors of indirect branches as fall-through candidates, so that they take the
// positions after the dispatches of interpreters. Functions with indirect branches keep the order of LLVM's chains:
// their entry count is removed, without which ext-TSP skips a function. The section prefix that the count implied is
// kept.
void pleach_keep_host_block_order(LLVMValueRef V) {
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

// The branches of an interpreter are predicted well if each operation ends in its own dispatch. The optimiser merges
// all dispatches into one. Code generation duplicates it just before layout, into blocks that end in an unconditional
// jump to it, if it is short. Counts of irreducible headers, which every label of a computed goto has, prevent this:
// they are for the source's graph, so that after optimisation the dispatch appears to run less often than its
// successors. MachineCSE then moves common computations of the operations into the dispatch, which becomes too long.
// This function removes these counts from functions with computed gotos.
//
// Returns the number of labels of the largest computed goto in a function that is optimised for speed.
uint32_t pleach_prepare_computed_gotos(LLVMModuleRef M) {
  uint32_t MaxLabels = 0;
  for (Function &F : *unwrap(M)) {
    uint32_t Labels = 0;
    for (const BasicBlock &BB : F)
      if (auto *Goto = dyn_cast<IndirectBrInst>(BB.getTerminator()))
        Labels = std::max<uint32_t>(Labels, Goto->getNumDestinations());
    if (Labels == 0)
      continue;
    for (BasicBlock &BB : F)
      BB.getTerminator()->setMetadata(LLVMContext::MD_irr_loop, nullptr);
    if (!F.hasOptSize() && !F.hasOptNone())
      MaxLabels = std::max(MaxLabels, Labels);
  }
  return MaxLabels;
}

// Moves a function to the end of its module.
void pleach_move_to_end(LLVMValueRef F) {
  Function *Fn = unwrap<Function>(F);
  Module *M = Fn->getParent();
  M->getFunctionList().splice(M->end(), M->getFunctionList(), Fn->getIterator());
}

} // extern "C"
