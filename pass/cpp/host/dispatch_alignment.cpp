// Aligns the dispatches of interpreters in machine code: blocks that are jumped to and end in a jump through a table.
//
// A dispatch that crosses a line of the processor's cache of decoded instructions needs two lookups for each operation.
// LLVM aligns what begins a loop, which need not be the dispatch: operations may be placed before it, and their code
// decides at which address it begins. Loop metadata in IR cannot ask for more, because code generation finds it only in
// loops with one latch, or one exit.
#include "pleach.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/CodeGen/MachineBlockFrequencyInfo.h"
#include "llvm/CodeGen/MachineBranchProbabilityInfo.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineOptimizationRemarkEmitter.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/Function.h"
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
      const Align Wanted(Decide(&Known, static_cast<double>(Summary->getTotalCount())));
      if (Wanted > Start->getAlignment()) {
        Start->setAlignment(Wanted);
        Start->setMaxBytesForAlignment(0);
        MachineOptimizationRemark R("pleach", "DispatchAligned", Jump.findBranchDebugLoc(), Start);
        F.getContext().diagnose(R << "dispatch aligned to " << ore::NV("Bytes", static_cast<unsigned>(Wanted.value()))
                                  << " bytes");
        Changed = true;
      }
    }
    return Changed;
  }

private:
  // The block before, if nothing but it leads here and it mostly does.
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
      if (Config && UsesProfile() && Options.AlignLoops && pleach_may_align(&TM) &&
          TM.getOptLevel() >= CodeGenOptLevel::Default)
        Config->insertPass(&MachineBlockPlacementID, new PleachAlignDispatches(Decide));
    });
  });
}

} // extern "C"
