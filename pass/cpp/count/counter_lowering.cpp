// Counter lowering: turns the counts that instrument.cpp inserted into memory operations at the end of the pipeline,
// and links the runtime.
//
// Counters are per thread: a function looks up its thread's array once, and every count is a non-atomic add to memory.
// The add is atomic for this thread, so that signal handlers lose no count. In innermost loops without calls that may not
// return, counters are promoted to registers, and added to memory at the loop's exits.
#include "../../runtime/layout.h"
#include "pleach.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace {

constexpr StringRef SlotName = "__pleach_slot";
constexpr StringRef UnitName = "__pleach_unit";
constexpr StringRef AttachName = "__pleach_attach";
constexpr StringRef CountName = "__pleach_count";

// One count: operands of the intrinsic.
struct Count {
  CallInst *Call;
  Value *index() const { return Call->getArgOperand(1); }
  uint64_t hashed() const { return cast<ConstantInt>(Call->getArgOperand(2))->getZExtValue(); }
  uint64_t word() const { return cast<ConstantInt>(Call->getArgOperand(3))->getZExtValue(); }
  Value *step() const { return Call->getArgOperand(4); }
};

bool isCount(const Instruction &I) {
  auto *II = dyn_cast<IntrinsicInst>(&I);
  if (!II || II->getIntrinsicID() != Intrinsic::instrprof_increment_step)
    return false;
  auto *Slot = dyn_cast<GlobalVariable>(II->getArgOperand(0)->stripPointerCasts());
  return Slot && Slot->isThreadLocal() && Slot->getName().starts_with(SlotName);
}

SmallVector<Count> countsOf(Function &F) {
  SmallVector<Count> Counts;
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (isCount(I))
        Counts.push_back({cast<CallInst>(&I)});
  return Counts;
}

using Values = SmallSetVector<int64_t, 8>;

// Collects the values that an index may have: a small superset, so that a value that equals none but the first is the
// first. False if there is no such set.
bool valuesOf(Value *V, Values &Out, SmallPtrSetImpl<Value *> &Open, unsigned &Budget, unsigned MaxValues) {
  if (Budget-- == 0) {
    Budget = 0;
    return false;
  }
  if (auto *C = dyn_cast<ConstantInt>(V)) {
    Out.insert(C->getSExtValue());
    return Out.size() <= MaxValues;
  }
  if (isa<PHINode>(V)) {
    if (!Open.insert(V).second)
      return true; // its values are being collected
    for (Value *In : cast<PHINode>(V)->incoming_values())
      if (!valuesOf(In, Out, Open, Budget, MaxValues))
        return false;
    return true;
  }
  if (auto *Select = dyn_cast<SelectInst>(V))
    return valuesOf(Select->getTrueValue(), Out, Open, Budget, MaxValues) &&
           valuesOf(Select->getFalseValue(), Out, Open, Budget, MaxValues);
  if (auto *Cast = dyn_cast<CastInst>(V); Cast && Cast->getSrcTy()->isIntegerTy(1)) {
    if (!isa<ZExtInst, SExtInst>(Cast))
      return false;
    Out.insert(0);
    Out.insert(isa<ZExtInst>(Cast) ? 1 : -1);
    return Out.size() <= MaxValues;
  }
  auto *Op = dyn_cast<BinaryOperator>(V);
  if (!Op || !Op->getType()->isIntegerTy(64))
    return false;
  // Operands are evaluated separately. A sum through the loop's own φ has unboundedly many values; the budget ends it.
  SmallPtrSet<Value *, 8> Left, Right;
  Values A, B;
  if (!valuesOf(Op->getOperand(0), A, Left, Budget, MaxValues) || !valuesOf(Op->getOperand(1), B, Right, Budget, MaxValues))
    return false;
  for (int64_t X : A)
    for (int64_t Y : B) {
      uint64_t U = X, W = Y;
      switch (Op->getOpcode()) {
      case Instruction::Add: Out.insert(U + W); break;
      case Instruction::Sub: Out.insert(U - W); break;
      case Instruction::And: Out.insert(U & W); break;
      case Instruction::Or:  Out.insert(U | W); break;
      case Instruction::Xor: Out.insert(U ^ W); break;
      case Instruction::Mul: Out.insert(U * W); break;
      case Instruction::Shl:
        if (W > 63)
          return false;
        Out.insert(U << W);
        break;
      default:
        return false;
      }
      if (Out.size() > MaxValues)
        return false;
    }
  return true;
}

// Promotes the counters of one loop to registers.
class Promotion {
  Loop &L;
  Function &F;
  const PleachLimits &Limits;
  SmallVectorImpl<AllocaInst *> &Variables;
  SmallVector<BasicBlock *> Exits;
  struct Several {
    AllocaInst *All;
    int64_t First;
    SmallVector<std::pair<int64_t, AllocaInst *>, 3> Others;
  };
  MapVector<int64_t, AllocaInst *> Constant; // by index
  SmallVector<Several, 4> Varying;
  Value *Slot = nullptr;

public:
  Promotion(Loop &L, const PleachLimits &Limits, SmallVectorImpl<AllocaInst *> &Variables)
      : L(L), F(*L.getHeader()->getParent()), Limits(Limits), Variables(Variables) {}

  bool run() {
    L.getUniqueExitBlocks(Exits);
    if (!L.isInnermost() || !L.isLoopSimplifyForm() || Exits.empty() || Exits.size() > Limits.MaxLoopExits)
      return false;
    for (BasicBlock *Exit : Exits)
      if (Exit->getFirstInsertionPt() == Exit->end())
        return false;
    SmallVector<std::pair<Count, Values>> Counts;
    Values All;
    for (BasicBlock *BB : L.blocks())
      for (Instruction &I : *BB) {
        if (isCount(I)) {
          Count C{cast<CallInst>(&I)};
          Values Of;
          SmallPtrSet<Value *, 8> Open;
          unsigned Budget = 100;
          if (!C.hashed() && valuesOf(C.index(), Of, Open, Budget, Limits.MaxIndexValues)) {
            All.insert_range(Of);
            Counts.push_back({C, Of});
          }
        } else if (auto *Call = dyn_cast<CallBase>(&I); Call && !isa<IntrinsicInst>(Call)) {
          // The loop's counts would be lost if the call did not return.
          if (!Call->doesNotThrow() || !Call->hasFnAttr(Attribute::WillReturn))
            return false;
        }
      }
    if (Counts.empty() || All.size() > Limits.MaxPromotedCounters)
      return false;
    Slot = Counts.front().first.Call->getArgOperand(0);
    for (auto &[C, Of] : Counts)
      keep(C, Of);
    flush();
    return true;
  }

private:
  AllocaInst *variable() {
    IRBuilder<> B(&F.getEntryBlock(), F.getEntryBlock().begin());
    AllocaInst *Variable = B.CreateAlloca(B.getInt64Ty(), nullptr, "pleach.count");
    Variables.push_back(Variable);
    B.SetInsertPoint(L.getLoopPreheader()->getTerminator());
    B.CreateStore(B.getInt64(0), Variable);
    return Variable;
  }

  static Value *read(IRBuilder<> &B, AllocaInst *Variable) {
    return B.CreateLoad(B.getInt64Ty(), Variable);
  }

  void keep(const Count &C, const Values &Of) {
    IRBuilder<> B(C.Call);
    auto Add = [&](AllocaInst *Variable, Value *Step) {
      B.CreateStore(B.CreateAdd(read(B, Variable), Step), Variable);
    };
    if (Of.size() == 1) {
      AllocaInst *&Variable = Constant[Of.front()];
      if (!Variable)
        Variable = variable();
      Add(Variable, C.step());
    } else {
      // Counts all executions, and those of each value except the first.
      Several &S = Varying.emplace_back();
      S.All = variable();
      S.First = Of.front();
      Add(S.All, C.step());
      for (int64_t Index : ArrayRef(Of.getArrayRef()).drop_front()) {
        S.Others.push_back({Index, variable()});
        Value *Is = B.CreateICmpEQ(C.index(), B.getInt64(Index));
        Add(S.Others.back().second, B.CreateSelect(Is, C.step(), B.getInt64(0)));
      }
    }
    C.Call->eraseFromParent();
  }

  void flush() {
    for (BasicBlock *Exit : Exits) {
      IRBuilder<> B(Exit, Exit->getFirstInsertionPt());
      auto Emit = [&](int64_t Index, Value *Step) {
        pleachEmitCount(B, Slot, B.getInt64(Index), 0, 0, Step);
      };
      for (auto [Index, Variable] : Constant)
        Emit(Index, read(B, Variable));
      for (const Several &S : Varying) {
        Value *Rest = read(B, S.All);
        for (auto [Index, Variable] : S.Others) {
          Value *Step = read(B, Variable);
          Emit(Index, Step);
          Rest = B.CreateSub(Rest, Step);
        }
        Emit(S.First, Rest);
      }
    }
  }
};

class Lowering {
  Function &F;
  Module &M;
  SmallVector<Count> Counts;
  Type *I64, *Ptr;

public:
  Lowering(Function &F, SmallVector<Count> Counts)
      : F(F), M(*F.getParent()), Counts(std::move(Counts)),
        I64(Type::getInt64Ty(F.getContext())), Ptr(PointerType::getUnqual(F.getContext())) {}

  void run() {
    // No calls of libgcc's atomic operations for a counter.
    if (M.getTargetTriple().isAArch64()) {
      StringRef Features = F.getFnAttribute("target-features").getValueAsString();
      F.addFnAttr("target-features", (Features + (Features.empty() ? "" : ",") + "-outline-atomics").str());
    }
    SmallPtrSet<CallInst *, 8> Repeating;
    Value *Words = threadsArray(Repeating);
    for (const Count &C : Counts) {
      IRBuilder<> B(C.Call);
      Value *Counter = C.hashed() ? hashed(C, Words, Repeating.contains(C.Call)) : B.CreateInBoundsGEP(I64, Words, C.index());
      B.SetInsertPoint(C.Call);
      add(B, Counter, C.step());
      C.Call->eraseFromParent();
    }
  }

private:
  // One instruction, so that a signal handler finds it done or not begun. On x86, instruction selection combines a
  // volatile load, an add and a store, except in functions that it does not optimise; other processors need an atomic
  // addition.
  void add(IRBuilder<> &B, Value *Counter, Value *Step) {
    if (!M.getTargetTriple().isX86()) {
      B.CreateAtomicRMW(AtomicRMWInst::Add, Counter, Step, MaybeAlign(8), AtomicOrdering::Monotonic);
      return;
    }
    if (F.hasOptNone()) {
      auto *T = FunctionType::get(B.getVoidTy(), {Ptr, I64}, false);
      CallInst *Add = B.CreateCall(
          InlineAsm::get(T, "addq $1, $0", "=*m,r,~{flags}", /*hasSideEffects=*/true), {Counter, Step});
      Add->addParamAttr(0, Attribute::get(F.getContext(), Attribute::ElementType, I64));
      return;
    }
    Value *Old = B.CreateAlignedLoad(I64, Counter, Align(8), /*isVolatile=*/true);
    B.CreateAlignedStore(B.CreateAdd(Old, Step), Counter, Align(8), /*isVolatile=*/true);
  }

  GlobalVariable *unit() { return M.getGlobalVariable(UnitName, /*AllowInternal=*/true); }

  // Looks up the thread's array at the nearest common dominator of all counts that is outside of loops. Also collects
  // the counts in innermost loops.
  Value *threadsArray(SmallPtrSetImpl<CallInst *> &Repeating) {
    DominatorTree DT(F);
    LoopInfo LI(DT);
    for (const Count &C : Counts)
      if (Loop *L = LI.getLoopFor(C.Call->getParent()); L && L->isInnermost())
        Repeating.insert(C.Call);
    BasicBlock *At = nullptr;
    for (const Count &C : Counts)
      if (DT.isReachableFromEntry(C.Call->getParent()))
        At = At ? DT.findNearestCommonDominator(At, C.Call->getParent()) : C.Call->getParent();
    if (!At)
      At = &F.getEntryBlock();
    while (Loop *L = LI.getLoopFor(At))
      At = DT.getNode(L->getHeader())->getIDom()->getBlock();
    Instruction *Before = At->getTerminator();
    for (Instruction &I : *At)
      if (isCount(I)) {
        Before = &I;
        break;
      }

    Value *Slot = Counts.front().Call->getArgOperand(0);
    IRBuilder<> B(Before);
    Value *Address = B.CreateThreadLocalAddress(cast<GlobalVariable>(Slot));
    Value *Found = B.CreateAlignedLoad(Ptr, Address, Align(8), "pleach.words");
    Instruction *Slow = SplitBlockAndInsertIfThen(
        B.CreateIsNull(Found), Before, /*Unreachable=*/false,
        MDBuilder(F.getContext()).createBranchWeights(1, 1 << 20));
    B.SetInsertPoint(Slow);
    Value *Attached = call(B, AttachName, {unit(), Address});
    B.SetInsertPoint(Before->getParent(), Before->getParent()->begin());
    PHINode *Words = B.CreatePHI(Ptr, 2, "pleach.words");
    Words->addIncoming(Found, Slow->getParent()->getSinglePredecessor());
    Words->addIncoming(Attached, Slow->getParent());
    return Words;
  }

  // The counter of a number in a hash table: at the number's first place, or where the runtime finds it. Innermost
  // loops tend to repeat a path, so there the last pair is tried first.
  Value *hashed(const Count &C, Value *Words, bool Repeats) {
    IRBuilder<> B(C.Call);
    auto Word = [&](unsigned I) { return B.CreateConstInBoundsGEP1_64(I64, Words, C.word() + I); };
    Value *Key = B.CreateAdd(C.index(), B.getInt64(1));
    auto IsOther = [&](Value *Pair) { return B.CreateICmpNE(B.CreateLoad(I64, Pair), Key); };
    auto Merge = [&](Instruction *Then, Value *Fast, Value *Slow) {
      BasicBlock *Join = C.Call->getParent();
      B.SetInsertPoint(Join, Join->begin());
      PHINode *Pair = B.CreatePHI(Ptr, 2);
      for (BasicBlock *Pred : predecessors(Join))
        Pair->addIncoming(Pred == Then->getParent() ? Slow : Fast, Pred);
      return Pair;
    };

    Value *Last = nullptr;
    Instruction *Probe = C.Call;
    if (Repeats) {
      Last = B.CreateLoad(Ptr, Word(2));
      Probe = SplitBlockAndInsertIfThen(IsOther(Last), C.Call, /*Unreachable=*/false);
      B.SetInsertPoint(Probe);
    }
    Value *Hash = B.CreateLShr(B.CreateMul(C.index(), B.getInt64(PLEACH_HASH_FACTOR)), 32);
    Value *First = B.CreateGEP(B.getInt8Ty(), B.CreateLoad(Ptr, Word(0)),
                               B.CreateAnd(Hash, B.CreateLoad(I64, Word(1))));
    Instruction *Slow =
        SplitBlockAndInsertIfThen(IsOther(First), Probe, /*Unreachable=*/false,
                                  MDBuilder(F.getContext()).createBranchWeights(1, 100));
    B.SetInsertPoint(Slow);
    Value *Found = call(B, CountName, {unit(), Words, B.getInt64(C.hashed() - 1), C.index()});
    BasicBlock *Join = Probe->getParent();
    B.SetInsertPoint(Join, Join->begin());
    PHINode *Pair = B.CreatePHI(Ptr, 2);
    for (BasicBlock *Pred : predecessors(Join))
      Pair->addIncoming(Pred == Slow->getParent() ? Found : First, Pred);
    Value *Result = Pair;
    if (Repeats) {
      B.SetInsertPoint(Probe);
      B.CreateStore(Pair, Word(2));
      Result = Merge(Probe, Last, Pair);
    }
    B.SetInsertPoint(C.Call);
    return B.CreateConstInBoundsGEP1_64(I64, Result, 1);
  }

  Value *call(IRBuilder<> &B, StringRef Name, ArrayRef<Value *> Args) {
    SmallVector<Type *> Types;
    for (Value *Arg : Args)
      Types.push_back(Arg->getType());
    FunctionCallee Callee = M.getOrInsertFunction(Name, FunctionType::get(Ptr, Types, false));
    CallInst *Call = B.CreateCall(Callee, Args);
    Call->setCallingConv(CallingConv::PreserveMost);
    Call->setDoesNotThrow();
    return Call;
  }
};

bool promoteLoops(Function &F, const PleachLimits &Limits) {
  if (none_of(instructions(F), isCount))
    return false;
  DominatorTree DT(F);
  LoopInfo LI(DT);
  SmallVector<AllocaInst *> Variables;
  for (Loop *L : LI.getLoopsInPreorder())
    Promotion(*L, Limits, Variables).run();
  if (!Variables.empty())
    PromoteMemToReg(Variables, DT);
  return !Variables.empty();
}

void lower(Function &F) {
  SmallVector<Count> Counts = countsOf(F);
  if (!Counts.empty())
    Lowering(F, std::move(Counts)).run();
}

} // namespace

bool pleachPromoteCounters(Function &F, const PleachLimits &Limits) { return promoteLoops(F, Limits); }

extern "C" {

// Lowers a module's counts, then links the functions of the runtime that they call.
// Returns a constant text on failure, else null.
const char *pleach_lower_counters(LLVMModuleRef Ref, const char *Bitcode, size_t Size) {
  Module &M = *unwrap(Ref);
  for (Function &F : M)
    lower(F);
  if (!M.getGlobalVariable(UnitName, /*AllowInternal=*/true))
    return nullptr;
  auto Runtime =
      parseBitcodeFile(MemoryBufferRef(StringRef(Bitcode, Size), "pleach runtime"), M.getContext());
  if (!Runtime) {
    consumeError(Runtime.takeError());
    return "pleach: the counting runtime cannot be read by this LLVM";
  }
  Module &R = **Runtime;
  R.setDataLayout(M.getDataLayout());
  R.setTargetTriple(M.getTargetTriple());
  // The module flags of the user take precedence.
  if (NamedMDNode *Flags = R.getModuleFlagsMetadata())
    R.eraseNamedMetadata(Flags);
  if (NamedMDNode *Ident = R.getNamedMetadata("llvm.ident"))
    R.eraseNamedMetadata(Ident);
  for (GlobalObject &G : R.global_objects())
    if (G.hasWeakLinkage()) {
      // One copy for each executable or shared library, and none if nothing is counted.
      G.setLinkage(GlobalValue::LinkOnceODRLinkage);
      G.setComdat(R.getOrInsertComdat(G.getName()));
    }
  if (Linker::linkModules(M, std::move(*Runtime), Linker::Flags::LinkOnlyNeeded))
    return "pleach: the counting runtime does not link with this module";
  return nullptr;
}

} // extern "C"
