// Aligns the dispatches of interpreters in machine code: blocks that are jumped to and end in a jump through a table.
//
// How long an operation of an interpreter takes depends on where in a line of 64 bytes its dispatch lies: longest where
// it crosses lines, shortest where its jump is late in a line (feedback/decide/src/placement/align.rs, which decides).
// LLVM aligns what begins a loop, which need not be the dispatch: operations may be placed before it, and their code
// decides at which address it begins. Loop metadata in IR cannot ask for more, because code generation finds it only in
// loops with one latch, or one exit.
#include "pleach.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineBranchProbabilityInfo.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineOptimizationRemarkEmitter.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ProfileSummary.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace llvm;

namespace {

uint64_t instructions(const MachineBasicBlock &MBB) {
  return llvm::count_if(MBB, [](const MachineInstr &I) { return !I.isMetaInstruction(); });
}

bool endsInIndirectJump(const MachineBasicBlock &MBB) {
  auto Last = MBB.getLastNonDebugInstr();
  return Last != MBB.end() && Last->isIndirectBranch();
}

// Bytes of a line of caches.
constexpr unsigned Line = 64;

// No-operations of 10, 10, 10 and 2 bytes, as every assembler and syntax takes them. LLVM leaves the directive `.nops` out
// where it prints assembly.
#define PLEACH_NOP_10 ".byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,2,0,0\n\t"
constexpr char HalfLine[] = PLEACH_NOP_10 PLEACH_NOP_10 PLEACH_NOP_10 ".byte 0x66,0x90";
#undef PLEACH_NOP_10

// Makes a block begin in the middle of a line: a block before it has half a line of no-operations. Jumps lead to the
// block itself; only what falls into it executes them.
void beginInSecondHalf(MachineBasicBlock &Start) {
  MachineFunction &MF = *Start.getParent();
  MachineBasicBlock *Before = Start.getPrevNode();
  const bool FallsIn = Before && Before->getFallThrough(/*JumpToFallThrough=*/false) == &Start;
  MachineBasicBlock *Padding = MF.CreateMachineBasicBlock(Start.getBasicBlock());
  MF.insert(Start.getIterator(), Padding);
  Padding->setAlignment(Align(Line));
  for (const auto &LiveIn : Start.liveins())
    Padding->addLiveIn(LiveIn);
  BuildMI(Padding, DebugLoc(), MF.getSubtarget().getInstrInfo()->get(TargetOpcode::INLINEASM))
      .addExternalSymbol(HalfLine)
      .addImm(InlineAsm::Extra_HasSideEffects);
  if (FallsIn)
    Before->replaceSuccessor(&Start, Padding);
  Padding->addSuccessor(&Start, BranchProbability::getOne());
  Start.setAlignment(Align(1));
}

class PleachAlignDispatches : public MachineFunctionPass {
  PleachAlignmentFn Decide;

public:
  static char ID;

  explicit PleachAlignDispatches(PleachAlignmentFn Decide) : MachineFunctionPass(ID), Decide(Decide) {}

  StringRef getPassName() const override { return "pleach: align dispatches"; }

  void getAnalysisUsage(AnalysisUsage &AU) const override {
    AU.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(AU);
  }

  bool runOnMachineFunction(MachineFunction &MF) override {
    const Function &F = MF.getFunction();
    if (F.hasOptSize() || !F.getEntryCount() || none_of(MF, endsInIndirectJump))
      return false;
    std::unique_ptr<ProfileSummary> Summary(
        ProfileSummary::getFromMD(F.getParent()->getProfileSummary(/*IsCS=*/false)));
    if (!Summary)
      return false;
    // Not from the pass manager, which would compute them for all functions.
    MachineDominatorTree DT(MF);
    MachineLoopInfo LI(DT);
    MachineBranchProbabilityInfo BPI;
    MachineBlockFrequencyInfo BFI(MF, BPI, LI);
    const double Calls = static_cast<double>(F.getEntryCount()->getCount()) /
                         static_cast<double>(std::max<uint64_t>(BFI.getEntryFreq().getFrequency(), 1));
    bool Changed = false;
    for (MachineBasicBlock &Jump : MF) {
      if (!endsInIndirectJump(Jump))
        continue;
      PleachLoop Known = {instructions(Jump), 0, 0};
      MachineBasicBlock *Start = &Jump;
      // The comparison with the table's size is a block of its own.
      while (MachineBasicBlock *Before = fallsOnlyInto(*Start)) {
        // What repeats an inner loop is no part of it.
        if (LI.getLoopFor(Before) != LI.getLoopFor(Start))
          break;
        Start = Before;
        Known.Instructions += instructions(*Before);
      }
      if (!LI.getLoopFor(Start))
        continue;
      const BlockFrequency Executions = BFI.getBlockFreq(Start);
      Known.Iterations = static_cast<double>(Executions.getFrequency()) * Calls;
      if (MachineBasicBlock *Before = Start->getPrevNode(); Before && Before->isSuccessor(Start))
        Known.Entries =
            static_cast<double>((BFI.getBlockFreq(Before) * BPI.getEdgeProbability(Before, Start)).getFrequency()) *
            Calls;
      const uint32_t Wanted = Decide(&Known, static_cast<double>(Summary->getTotalCount()));
      if (Wanted <= 1)
        continue;
      Changed = true;
      Start->setMaxBytesForAlignment(0);
      MachineOptimizationRemark R("pleach", "DispatchAligned", Jump.findBranchDebugLoc(), Start);
      if (Wanted == Line) {
        beginInSecondHalf(*Start);
        // No other jumps follow in the line.
        if (MachineBasicBlock *After = Jump.getNextNode())
          After->setAlignment(std::max(After->getAlignment(), Align(Line)));
        F.getContext().diagnose(R << "dispatch placed in the second half of a line");
      } else {
        Start->setAlignment(std::max(Start->getAlignment(), Align(Wanted)));
        F.getContext().diagnose(R << "dispatch aligned to " << ore::NV("Bytes", Wanted) << " bytes");
      }
    }
    return Changed;
  }

private:
  // The block before, if nothing but it leads here.
  static MachineBasicBlock *fallsOnlyInto(MachineBasicBlock &MBB) {
    MachineBasicBlock *Before = MBB.getPrevNode();
    if (!Before || MBB.pred_size() != 1 || *MBB.pred_begin() != Before || endsInIndirectJump(*Before))
      return nullptr;
    return Before;
  }
};

char PleachAlignDispatches::ID = 0;

} // namespace

extern "C" {

// Adds passes to the pipelines of code generation of this process. Called at least once.
void pleach_register_code_generation(PleachUsesProfileFn UsesProfile, PleachAlignmentFn Decide) {
  static std::once_flag Once;
  std::call_once(Once, [=] {
    // Never deleted: code generation may run while the process ends.
    new RegisterTargetPassConfigCallback([=](TargetMachine &TM, legacy::PassManagerBase &, TargetPassConfig *Config) {
      PleachOptions Options;
      pleach_read_options(&Options);
      if (Config && UsesProfile() && Options.Placement && Options.AlignLoops && pleach_may_align(&TM) &&
          TM.getTargetTriple().getArch() == Triple::x86_64 && // the padding is code of it
          TM.getOptLevel() >= CodeGenOptLevel::Default)
        Config->insertPass(&MachineBlockPlacementID, new PleachAlignDispatches(Decide));
    });
  });
}

} // extern "C"
