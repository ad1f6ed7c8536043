// Makes the order of pseudo probes in an object file depend on nothing but the module.
//
// Until a module is finished, LLVM keeps its probes by function in a hash map, whose order depends on the addresses of
// symbols in memory; it sorts them by section only (MCPseudoProbeSections::emit, LLVM 22). Where functions share a
// section, as they do without -ffunction-sections, each compilation may order their probes in another way: the file has
// other bytes, and the program another build-id. Here, the probes of each function are emitted before the code of the
// next, so that the map never has more than one. Where another process assembles (-save-temps), LLVM's order stays.
#include "pleach.h"
#include "llvm/CodeGen/AsmPrinter.h"
#include "llvm/CodeGen/CFIFixup.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/LegacyPassManagers.h"
#include "llvm/IR/PseudoProbe.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectStreamer.h"
#include "llvm/MC/MCPseudoProbe.h"
#include "llvm/MC/MCSymbol.h"
#include "llvm/Support/MD5.h"
#include "llvm/Target/RegisterTargetPassConfigCallback.h"
#include <mutex>

using namespace llvm;

namespace {

// Runs before code is printed.
class PleachEmitProbes : public MachineFunctionPass {
public:
  static char ID;

  PleachEmitProbes() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "pleach: emit the probes of the function before"; }

  void getAnalysisUsage(AnalysisUsage &AU) const override {
    AU.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(AU);
  }

  bool runOnMachineFunction(MachineFunction &MF) override {
    // The map is no constant, only its accessor is.
    auto &Probes = const_cast<MCPseudoProbeSections::MCProbeDivisionMap &>(
        MF.getContext().getMCPseudoProbeTable().getProbeSections().getMCProbes());
    // Where assembly is printed, probes are directives in the code and the map is empty.
    if (Probes.empty())
      return false;
    if (AsmPrinter *Printer = printer()) {
      // What fills the map is a streamer of object files.
      emit(Probes, *static_cast<MCObjectStreamer *>(Printer->OutStreamer.get()));
      Probes.clear();
    }
    return false;
  }

private:
  // What LLVM writes at the end: for each symbol, the trees of probes in the section that belongs to its code, each
  // after a sentinel.
  static void emit(MCPseudoProbeSections::MCProbeDivisionMap &Probes, MCObjectStreamer &Streamer) {
    // A function that is split has several symbols.
    std::vector<MCSymbol *> Symbols;
    for (const auto &Division : Probes)
      Symbols.push_back(Division.first);
    llvm::sort(Symbols, [](const MCSymbol *A, const MCSymbol *B) { return A->getName() < B->getName(); });
    for (MCSymbol *Symbol : Symbols) {
      MCSection *Section =
          Streamer.getContext().getObjectFileInfo()->getPseudoProbeSection(Symbol->getSection());
      if (!Section)
        continue;
      Streamer.switchSection(Section);
      std::vector<std::pair<InlineSite, MCPseudoProbeInlineTree *>> Trees;
      for (const auto &[Site, Tree] : Probes[Symbol].getChildren())
        Trees.emplace_back(Site, Tree.get());
      llvm::sort(Trees, less_first());
      for (const auto &[Site, Tree] : Trees) {
        MCPseudoProbe Sentinel(Symbol, MD5Hash(Symbol->getName()), uint32_t(PseudoProbeReservedId::Invalid),
                               uint32_t(PseudoProbeType::Block), uint32_t(PseudoProbeAttributes::Sentinel),
                               /*Discriminator=*/0);
        const MCPseudoProbe *Last = &Sentinel;
        Tree->emit(&Streamer, Last);
      }
    }
  }

  // The printer that runs on each function after this pass. None, if a pass of modules is between: then it runs on all
  // functions at once, and LLVM's order stays.
  AsmPrinter *printer() const {
    PMDataManager &Manager = getResolver()->getPMDataManager();
    if (Manager.getPassManagerType() != PMT_FunctionPassManager)
      return nullptr;
    auto &Passes = static_cast<FPPassManager &>(Manager);
    for (unsigned At = Passes.getNumContainedPasses(); At > 0; --At)
      // Its identity is private. Each target's printer has this name.
      if (Pass *P = Passes.getContainedPass(At - 1); P->getPassName().ends_with(" Assembly Printer"))
        return static_cast<AsmPrinter *>(P);
    return nullptr;
  }
};

char PleachEmitProbes::ID = 0;

} // namespace

extern "C" {

// Adds the pass to the pipelines of code generation of this process. Called at least once.
void pleach_register_probe_order() {
  static std::once_flag Once;
  std::call_once(Once, [] {
    // Never deleted: code generation may run while the process ends.
    new RegisterTargetPassConfigCallback([](TargetMachine &, legacy::PassManagerBase &, TargetPassConfig *Config) {
      if (!Config)
        return;
      // The last passes that targets have in common; a pass of modules, the outliner, is between on AArch64.
      Config->insertPass(&LiveDebugValuesID, new PleachEmitProbes);
      Config->insertPass(&CFIFixup::ID, new PleachEmitProbes);
    });
  });
}

} // extern "C"
