// The unit of a counted module: its description for the runtime.
#include "../../runtime/layout.h"
#include "pleach.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include <iterator>

using namespace llvm;

static_assert(sizeof(PleachHashed) == sizeof(hashed), "one struct, two names");
static_assert(offsetof(PleachHashed, Word) == offsetof(hashed, word), "one struct, two names");

extern "C" {

// Emits a module's unit: the description, the thread-local variable that points to a thread's array, and a constructor
// that registers the unit. Returns the variable.
LLVMValueRef pleach_make_unit(LLVMModuleRef Ref, const char *Description, size_t Size, uint64_t Id,
                              uint64_t Words, uint32_t Tag, const PleachHashed *Hashed,
                              size_t HashedCount) {
  Module &M = *unwrap(Ref);
  LLVMContext &C = M.getContext();
  Type *I64 = Type::getInt64Ty(C);
  auto *Ptr = PointerType::getUnqual(C);
  auto Global = [&](Type *T, bool Constant, llvm::Constant *Init, const Twine &Name) {
    return new GlobalVariable(M, T, Constant, GlobalValue::InternalLinkage, Init, Name);
  };
  auto Word = [&](uint64_t V) { return ConstantInt::get(I64, V); };
  Constant *Text = ConstantDataArray::getString(C, StringRef(Description, Size), /*AddNull=*/false);
  GlobalVariable *Bytes = Global(Text->getType(), true, Text, "__pleach_description");
  SmallVector<Constant *> Pairs;
  auto *Pair = StructType::get(I64, I64);
  for (const PleachHashed &H : ArrayRef(Hashed, HashedCount))
    Pairs.push_back(ConstantStruct::get(Pair, {Word(H.Function), Word(H.Word)}));
  auto *Table = ArrayType::get(Pair, Pairs.size());
  GlobalVariable *Functions =
      Global(Table, true, ConstantArray::get(Table, Pairs), "__pleach_hashed");
  // At least one pair, for hash counters without memory.
  auto *Lost = ArrayType::get(I64, std::max<uint64_t>(Words, 2));
  GlobalVariable *Spare =
      Global(Lost, false, ConstantAggregateZero::get(Lost), "__pleach_lost");
  Constant *Null = ConstantPointerNull::get(Ptr);
  // `struct unit` in runtime/layout.h, of which every field is one word.
  Constant *Fields[] = {Word(Id),  Bytes,     Word(Size),        Word(Words), Word(Tag), Functions,
                        Word(HashedCount), Spare, Null, Null, Word(0), Word(0)};
  static_assert(std::size(Fields) * sizeof(uint64_t) == sizeof(unit));
  Constant *Init = ConstantStruct::getAnon(Fields);
  GlobalVariable *Unit = Global(Init->getType(), false, Init, "__pleach_unit");
  GlobalVariable *Slot = Global(Ptr, false, Null, "__pleach_slot");
  Slot->setThreadLocalMode(GlobalValue::GeneralDynamicTLSModel);
  // Unused until counts are lowered.
  appendToCompilerUsed(M, {Unit, Slot});

  auto *Void = FunctionType::get(Type::getVoidTy(C), false);
  Function *Start = Function::Create(Void, GlobalValue::InternalLinkage, "__pleach_start_unit", M);
  Start->setDoesNotThrow();
  IRBuilder<> B(BasicBlock::Create(C, "", Start));
  FunctionCallee Register =
      M.getOrInsertFunction("__pleach_register", FunctionType::get(B.getVoidTy(), {Ptr}, false));
  B.CreateCall(Register, {Unit});
  B.CreateRetVoid();
  // Before the program's own constructors.
  appendToGlobalCtors(M, Start, 0);
  return wrap(Slot);
}

} // extern "C"
