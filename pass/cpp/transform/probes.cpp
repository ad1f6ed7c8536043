// Debug locations of probes. The C API can make neither discriminators nor subprograms without a list of types.
#include "pleach.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PseudoProbe.h"

using namespace llvm;

extern "C" {

// Gives a function without a subprogram one, for inline stacks. Its compile unit emits no DWARF. `Unit`: one per
// module, initially null.
void pleach_ensure_subprogram(LLVMValueRef V, LLVMMetadataRef *Unit) {
  Function *F = unwrap<Function>(V);
  if (DISubprogram *SP = F->getSubprogram()) {
    // LLVM identifies the functions of inline stacks and of calls by linkage names, which clang leaves out at -g1.
    const StringRef Name = GlobalValue::dropLLVMManglingEscape(F->getName());
    if (SP->getLinkageName().empty() && SP->getName() != Name)
      SP->replaceRawLinkageName(MDString::get(F->getContext(), Name));
    return;
  }
  Module *M = F->getParent();
  LLVMContext &C = M->getContext();
  if (!*Unit) {
    if (!M->getModuleFlag("Debug Info Version"))
      M->addModuleFlag(Module::Warning, "Debug Info Version", DEBUG_METADATA_VERSION);
    DIBuilder Builder(*M, /*AllowUnresolved=*/false);
    *Unit = wrap(static_cast<Metadata *>(Builder.createCompileUnit(
        DISourceLanguageName(dwarf::DW_LANG_C), DIFile::get(C, M->getSourceFileName(), ""),
        "pleach", /*isOptimized=*/true, "", 0, "", DICompileUnit::NoDebug)));
  }
  auto *CU = cast<DICompileUnit>(unwrap(*Unit));
  auto *SP = DISubprogram::getDistinct(
      C, CU->getFile(), F->getName(), F->getName(), CU->getFile(), 0,
      DISubroutineType::get(C, DINode::FlagZero, 0, nullptr), 0, nullptr, 0, 0,
      DINode::FlagArtificial, DISubprogram::SPFlagDefinition | DISubprogram::SPFlagOptimized, CU);
  F->setSubprogram(SP);
  // LLVM replaces these by calls of functions that have subprograms, too. Where such a call has no location, what is
  // inlined for it keeps those of its own function, which are invalid here.
  for (Instruction &I : instructions(F))
    if (auto *Call = dyn_cast<IntrinsicInst>(&I))
      if (!Call->getDebugLoc() && Call->getCalledFunction()->getName().starts_with("llvm.coro."))
        Call->setDebugLoc(DILocation::get(C, 0, 0, SP));
}

// The place in the function itself of a location that came with inlined code.
static const DILocation *outermost(const DILocation *Loc) {
  while (const DILocation *Outer = Loc ? Loc->getInlinedAt() : nullptr)
    Loc = Outer;
  return Loc;
}

// Whether a location is in a function, or of code that was inlined into it. Code that was inlined before the function
// had a subprogram is not.
static bool isIn(const DILocation *Loc, const DISubprogram *SP) {
  return Loc && outermost(Loc)->getScope()->getSubprogram() == SP;
}

// Gives a call the identifier that inline stacks refer to, in its location's discriminator. `Early`: it may be inlined
// later, and code that was inlined before belongs to the function around it. Otherwise the location stays what it is for
// debuggers, and readers know that all calls are of the emitted function.
void pleach_set_call_probe(LLVMValueRef V, uint32_t Index, bool Direct, bool Early) {
  auto *Call = unwrap<CallBase>(V);
  DISubprogram *SP = Call->getFunction()->getSubprogram();
  const DILocation *Loc = Call->getDebugLoc().get();
  if (Early)
    Loc = outermost(Loc);
  if (!isIn(Loc, SP))
    Loc = DILocation::get(SP->getContext(), 0, 0, SP);
  uint32_t Packed = PseudoProbeDwarfDiscriminator::packProbeData(
      Index,
      static_cast<uint32_t>(Direct ? PseudoProbeType::DirectCall : PseudoProbeType::IndirectCall),
      0, PseudoProbeDwarfDiscriminator::FullDistributionFactor, Loc->getBaseDiscriminator());
  Call->setDebugLoc(Loc->cloneWithDiscriminator(Packed));
}

// Gives a probe the first location in its block from `Position` on, so that instructions that the optimiser inserts
// there get the location that they would have without the probe. The place is that in the function itself: LLVM takes
// the inline stack of a probe from its location.
void pleach_set_probe_location(LLVMValueRef Probe, LLVMValueRef Position) {
  auto *P = unwrap<Instruction>(Probe);
  DISubprogram *SP = P->getFunction()->getSubprogram();
  const DILocation *Loc = nullptr;
  for (Instruction *I = unwrap<Instruction>(Position); I && !Loc; I = I->getNextNode())
    Loc = I->getDebugLoc().get();
  Loc = outermost(Loc);
  // Without the probe data of a call.
  if (Loc && DILocation::isPseudoProbeDiscriminator(Loc->getDiscriminator()))
    Loc = Loc->cloneWithDiscriminator(0);
  P->setDebugLoc(isIn(Loc, SP) ? Loc : DILocation::get(SP->getContext(), 0, 0, SP));
}

void pleach_erase_named_metadata(LLVMModuleRef M, const char *Name, size_t Size) {
  if (NamedMDNode *Node = unwrap(M)->getNamedMetadata(StringRef(Name, Size)))
    Node->eraseFromParent();
}

} // extern "C"
