// What `annotate` needs beyond LLVM's C API: probe positions, inline-stack locations, call facts.
#include "pleach.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PseudoProbe.h"

using namespace llvm;

// A stable view of one instruction; the order is that of `InstructionFacts` in src/ffi.rs.
struct PleachInstructionFacts {
  LLVMValueRef Callee;     // the called function, for a direct call
  uint32_t Line;           // source line, 0 where unknown
  uint8_t Counts;          // neither debug nor pseudo instruction
  uint8_t Call;            // 0 no call, 1 direct, 2 indirect, 3 inline assembly
  uint8_t MayNotReturn;    // for a call
  uint8_t EHPad;           // exception-handling pad
};

extern "C" {

void pleach_instruction_facts(LLVMValueRef V, PleachInstructionFacts *Facts) {
  Instruction *I = unwrap<Instruction>(V);
  *Facts = {};
  Facts->Counts = !I->isDebugOrPseudoInst();
  Facts->EHPad = I->isEHPad();
  // In the function itself: what was inlined into it may be of another file.
  if (const DILocation *Loc = I->getDebugLoc()) {
    while (const DILocation *Outer = Loc->getInlinedAt())
      Loc = Outer;
    Facts->Line = Loc->getLine();
  }
  auto *Call = dyn_cast<CallBase>(I);
  if (!Call || isa<IntrinsicInst>(Call))
    return;
  Facts->MayNotReturn = !Call->doesNotThrow() || !Call->hasFnAttr(Attribute::WillReturn);
  if (Call->isInlineAsm()) {
    Facts->Call = 3;
    return;
  }
  // Through aliases, and through a callee whose prototype differs from the call's: still direct.
  if (auto *F = dyn_cast_or_null<Function>(
          Call->getCalledOperand()->stripPointerCastsAndAliases())) {
    Facts->Call = 1;
    Facts->Callee = wrap(F);
  } else {
    Facts->Call = 2;
  }
}

bool pleach_function_is_naked(LLVMValueRef F) {
  return unwrap<Function>(F)->hasFnAttribute(Attribute::Naked);
}

// Where a probe goes: the first place for a call, after the entry block's allocas so that they stay
// together. Null in a block that has room for none (catchswitch).
LLVMValueRef pleach_probe_position(LLVMBasicBlockRef BB) {
  BasicBlock *B = unwrap(BB);
  auto It = B->getFirstInsertionPt();
  if (It == B->end())
    return nullptr;
  while (isa<AllocaInst>(*It) || It->isDebugOrPseudoInst())
    ++It;
  return wrap(&*It);
}

// A subprogram for inline stacks in a function that has none. Its compile unit emits no DWARF.
// `Unit` is one per module and starts out null.
void pleach_ensure_subprogram(LLVMValueRef V, LLVMMetadataRef *Unit) {
  Function *F = unwrap<Function>(V);
  if (F->getSubprogram())
    return;
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
  F->setSubprogram(DISubprogram::getDistinct(
      C, CU->getFile(), F->getName(), F->getName(), CU->getFile(), 0,
      DISubroutineType::get(C, DINode::FlagZero, 0, nullptr), 0, nullptr, 0, 0,
      DINode::FlagArtificial, DISubprogram::SPFlagDefinition | DISubprogram::SPFlagOptimized, CU));
}

// Gives a call the identifier that inline stacks refer to, in its location's discriminator.
void pleach_set_call_probe(LLVMValueRef V, uint32_t Index, bool Direct) {
  auto *Call = unwrap<CallBase>(V);
  DISubprogram *SP = Call->getFunction()->getSubprogram();
  const DILocation *Loc = Call->getDebugLoc().get();
  if (!Loc)
    Loc = DILocation::get(SP->getContext(), 0, 0, SP);
  uint32_t Packed = PseudoProbeDwarfDiscriminator::packProbeData(
      Index,
      static_cast<uint32_t>(Direct ? PseudoProbeType::DirectCall : PseudoProbeType::IndirectCall),
      0, PseudoProbeDwarfDiscriminator::FullDistributionFactor, Loc->getBaseDiscriminator());
  Call->setDebugLoc(Loc->cloneWithDiscriminator(Packed));
}

// A probe takes the location of the code it stands for: the first one in its block from `Position`
// on, so that code the optimiser later puts there finds what it would have found.
void pleach_set_probe_location(LLVMValueRef Probe, LLVMValueRef Position) {
  auto *P = unwrap<Instruction>(Probe);
  DISubprogram *SP = P->getFunction()->getSubprogram();
  const DILocation *Loc = nullptr;
  for (Instruction *I = unwrap<Instruction>(Position); I && !Loc; I = I->getNextNode())
    Loc = I->getDebugLoc().get();
  // A call's own probe data must not be taken for the block's.
  if (Loc && DILocation::isPseudoProbeDiscriminator(Loc->getDiscriminator()))
    Loc = Loc->cloneWithDiscriminator(0);
  P->setDebugLoc(Loc ? Loc : DILocation::get(SP->getContext(), 0, 0, SP));
}

// Code generation merges equal ends of blocks, and drops the probes of all but one. That would hide much of what tells
// paths apart: the cases of an interpreter end alike, and counts of blocks without probes are guesses. Off unless the user
// asked for it.
void pleach_keep_block_tails() {
  pleachSetUnlessGiven("enable-tail-merge", "0");
}

} // extern "C"
