// Applies a plan of counting operations to a function.
//
// A count is a call of the intrinsic `llvm.instrprof.increment.step` that accesses only memory that is inaccessible to
// the program. Cost models regard it as cheap, it moves with the code that it counts, and it blocks no other
// optimisation. counter_lowering.cpp turns it into memory operations after inlining.
#include "../../runtime/layout.h"
#include "pleach.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

using namespace llvm;

namespace {

StringRef calleeName(const CallBase &Call) {
  const auto *F = dyn_cast<Function>(Call.getCalledOperand()->stripPointerCastsAndAliases());
  return F ? F->getName() : StringRef();
}

uint32_t callKind(const CallBase &Call, const PleachPlan &Plan) {
  StringRef Name = calleeName(Call);
  return Plan.CallKind(Name.data(), Name.size());
}

class Instrumenter {
  Function &F;
  Module &M;
  Value *Slot;
  const PleachPlan &Plan;
  Type *I64, *I32, *Ptr;
  // Blocks of the graph, and the entry points of each block, which splitting multiplies.
  SmallVector<BasicBlock *> Blocks;
  SmallVector<Instruction *> Terminators;
  DenseMap<BasicBlock *, uint32_t> HeadOf;
  SmallVector<AllocaInst *> Variables;
  AllocaInst *Register = nullptr, *Record = nullptr;
  SmallVector<AllocaInst *, 3> History;
  SmallVector<CallInst *> Throwing, Setjmps, Longjmps, Endings;
  const char *Failure = nullptr;
  DenseMap<CallInst *, uint32_t> ResumedBlock;
  bool ReturnsTwice;

public:
  Instrumenter(Function &F, Value *Slot, const PleachPlan &Plan)
      : F(F), M(*F.getParent()), Slot(Slot), Plan(Plan), I64(Type::getInt64Ty(F.getContext())),
        I32(Type::getInt32Ty(F.getContext())), Ptr(PointerType::getUnqual(F.getContext())),
        ReturnsTwice(F.callsFunctionThatReturnsTwice()) {
    for (BasicBlock &BB : F) {
      HeadOf[&BB] = Blocks.size();
      Blocks.push_back(&BB);
      Terminators.push_back(BB.getTerminator());
    }
  }

  // Applies the plan; returns a reason if the function does not match it.
  const char *run() {
    collectCalls();
    makeVariables();
    // In this order, so that operations of an edge precede those of its target block.
    SmallPtrSet<BasicBlock *, 16> Tagged = tagged();
    for (const PleachBlock &R : ArrayRef(Plan.Records, Plan.RecordCount)) {
      IRBuilder<> B = atStart(Blocks[R.Block]);
      writeRecord(B, R.Ops.get().front(), !Tagged.contains(Blocks[R.Block]));
    }
    for (const PleachBlock &E : ArrayRef(Plan.Exits, Plan.ExitCount)) {
      IRBuilder<> B = atStart(Blocks[E.Block]);
      emit(B, E.Ops.get());
    }
    if (Record)
      for (BasicBlock *BB : Blocks)
        if (succ_empty(BB) && !isa<UnreachableInst>(BB->getFirstNonPHIOrDbg())) {
          IRBuilder<> B = atStart(BB);
          clearRecord(B);
        }
    splitIndirect();
    for (const PleachEdge &E : ArrayRef(Plan.Edges, Plan.EdgeCount)) {
      Instruction *At = edgePoint(E.From, E.To);
      if (!At)
        return Failure;
      IRBuilder<> B(At);
      emit(B, E.Ops.get());
    }
    IRBuilder<> B = atStart(&F.getEntryBlock());
    emit(B, Plan.Entry.get());
    for (const PleachResume &R : ArrayRef(Plan.Resumes, Plan.ResumeCount))
      resume(unwrap<CallInst>(R.Call), R.Ops.get());
    callRuntime();
    unwindThrowing();
    // Last, and therefore first in the entry block.
    B.SetInsertPoint(&F.getEntryBlock(), F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    for (AllocaInst *Variable : Variables)
      store(B, B.getInt64(0), Variable);
    if (!ReturnsTwice && !Variables.empty()) {
      DominatorTree DT(F);
      PromoteMemToReg(Variables, DT);
    }
    return nullptr;
  }

private:
  IRBuilder<> atStart(BasicBlock *BB) {
    return IRBuilder<>(BB, BB == &F.getEntryBlock() ? BB->getFirstNonPHIOrDbgOrAlloca()
                                                    : BB->getFirstInsertionPt());
  }

  void collectCalls() {
    SmallPtrSet<BasicBlock *, 16> Recorded;
    for (const PleachBlock &R : ArrayRef(Plan.Records, Plan.RecordCount))
      Recorded.insert(Blocks[R.Block]);
    for (BasicBlock *BB : Blocks)
      for (Instruction &I : *BB) {
        auto *Call = dyn_cast<CallInst>(&I);
        if (!Call || isa<IntrinsicInst>(Call) || Call->isInlineAsm())
          continue;
        const uint32_t Kind = callKind(*Call, Plan);
        if (Kind == Setjmp || Kind == Vfork) {
          if (Kind == Setjmp)
            Setjmps.push_back(Call);
          ResumedBlock[Call] = HeadOf[BB];
        } else if (Kind == Longjmp) {
          Longjmps.push_back(Call);
        } else if (Kind == EndsThread) {
          Endings.push_back(Call);
        } else if (Recorded.contains(BB) && !Call->doesNotThrow() && !Call->isMustTailCall()) {
          Throwing.push_back(Call);
        }
      }
  }

  // Blocks whose record already has its tag, which remains until the function exits.
  SmallPtrSet<BasicBlock *, 16> tagged() {
    SmallPtrSet<BasicBlock *, 16> Result, Recorded;
    DominatorTree DT(F);
    for (const PleachBlock &R : ArrayRef(Plan.Records, Plan.RecordCount))
      Recorded.insert(Blocks[R.Block]);
    for (BasicBlock *BB : Recorded)
      for (DomTreeNode *N = DT.getNode(BB)->getIDom(); N; N = N->getIDom())
        if (Recorded.contains(N->getBlock())) {
          Result.insert(BB);
          break;
        }
    return Result;
  }

  AllocaInst *variable(const Twine &Name) {
    IRBuilder<> B(&F.getEntryBlock(), F.getEntryBlock().begin());
    AllocaInst *A = B.CreateAlloca(I64, nullptr, Name);
    Variables.push_back(A);
    return A;
  }

  void makeVariables() {
    Register = variable("pleach.path");
    for (uint32_t I = 1; I < Plan.Window; ++I)
      History.push_back(variable("pleach.earlier"));
    if (Plan.RecordCount) {
      IRBuilder<> A(&F.getEntryBlock(), F.getEntryBlock().begin());
      Record = A.CreateAlloca(ArrayType::get(I32, Plan.Hashed ? 4 : 2), nullptr, "pleach.record");
      Record->setAlignment(Align(8));
    }
  }

  // Values live across setjmp must survive the second return: as in the C standard, they are volatile.
  Value *load(IRBuilder<> &B, AllocaInst *Variable) {
    return B.CreateLoad(I64, Variable, ReturnsTwice);
  }
  void store(IRBuilder<> &B, Value *V, AllocaInst *Variable) {
    B.CreateStore(V, Variable, ReturnsTwice);
  }

  Value *number(IRBuilder<> &B, const PleachOp &Op) {
    if (Op.Kind == OpCountConst)
      return B.getInt64(Op.Value);
    Value *R = load(B, Register);
    return Op.Value ? B.CreateAdd(R, B.getInt64(Op.Value)) : R;
  }

  // The key of a window of paths: their numbers plus one as digits, the latest last.
  Value *key(IRBuilder<> &B, Value *Number) {
    if (Plan.Window <= 1)
      return Number;
    Value *Key = nullptr;
    for (size_t I = History.size(); I-- > 0;) {
      Value *Digit = load(B, History[I]);
      Key = Key ? B.CreateAdd(B.CreateMul(Key, B.getInt64(Plan.Base)), Digit) : Digit;
    }
    return B.CreateAdd(B.CreateMul(Key, B.getInt64(Plan.Base)),
                       B.CreateAdd(Number, B.getInt64(1)));
  }

  void emit(IRBuilder<> &B, ArrayRef<PleachOp> Ops) {
    for (const PleachOp &Op : Ops)
      switch (Op.Kind) {
      case OpSet:
        store(B, B.getInt64(Op.Value), Register);
        break;
      case OpAdd:
        store(B, B.CreateAdd(load(B, Register), B.getInt64(Op.Value)), Register);
        break;
      default:
        count(B, number(B, Op));
      }
  }

  void count(IRBuilder<> &B, Value *Number) {
    Value *Index = key(B, Number);
    if (!Plan.Hashed)
      Index = B.CreateAdd(Index, B.getInt64(Plan.Word));
    pleachEmitCount(B, Slot, Index, Plan.Hashed, Plan.Hashed ? Plan.Word : 0, B.getInt64(1));
    for (size_t I = History.size(); I-- > 0;)
      store(B, I ? load(B, History[I - 1]) : B.CreateAdd(Number, B.getInt64(1)), History[I]);
  }

  void storeHalf(IRBuilder<> &B, unsigned Half, Value *V) {
    B.CreateAlignedStore(V, B.CreateConstInBoundsGEP1_32(I32, Record, Half), Align(4),
                         /*isVolatile=*/true);
  }

  // As one word: a volatile access to the whole record prevents SROA from splitting it.
  void clearRecord(IRBuilder<> &B) {
    Value *Zero = ConstantInt::get(B.getIntNTy(Plan.Hashed ? 128 : 64), 0);
    B.CreateAlignedStore(Zero, Record, Align(8), /*isVolatile=*/true);
  }

  // In two halves, so that no register holds a whole record: the runtime would mistake a spilled copy for a record.
  void writeRecord(IRBuilder<> &B, const PleachOp &Op, bool WithTag) {
    Value *Key = key(B, number(B, Op));
    if (Plan.Hashed) {
      B.CreateStore(Key, B.CreateConstInBoundsGEP1_32(I32, Record, 2), /*isVolatile=*/true);
      storeHalf(B, 0, B.getInt32(PLEACH_RECORD_HASH | (Plan.Hashed - 1)));
    } else {
      storeHalf(B, 0, B.CreateTrunc(B.CreateAdd(Key, B.getInt64(Plan.Word)), I32));
    }
    if (WithTag)
      storeHalf(B, 1, B.getInt32(Plan.Tag));
  }

  // An edge of an indirect branch cannot be split. Its targets are cloned for their other predecessors instead.
  void splitIndirect() {
    if (none_of(Terminators, [](Instruction *T) { return isa<IndirectBrInst>(T); }))
      return;
    SplitIndirectBrCriticalEdges(F, /*IgnoreBlocksWithoutPHI=*/false);
    for (uint32_t I = 0; I < Blocks.size(); ++I) {
      BasicBlock *Body = Terminators[I]->getParent();
      if (Body == Blocks[I])
        continue;
      for (BasicBlock *Head : predecessors(Body))
        HeadOf.try_emplace(Head, I);
    }
  }

  // The insertion point for an edge's code; null, with `Failure` set, if there is none.
  Instruction *edgePoint(uint32_t From, uint32_t To) {
    Instruction *T = Terminators[From];
    BasicBlock *Dest = nullptr;
    unsigned Index = 0;
    bool Unique = true;
    for (unsigned I = 0; I < T->getNumSuccessors(); ++I) {
      auto Head = HeadOf.find(T->getSuccessor(I));
      if (Head == HeadOf.end() || Head->second != To) {
        Unique = false;
      } else if (!Dest) {
        Dest = T->getSuccessor(I);
        Index = I;
      }
    }
    if (!Dest) {
      Failure = "its plan has an edge that its graph does not have";
      return nullptr;
    }
    if (Unique && !isa<InvokeInst, IndirectBrInst, CallBrInst>(T))
      return T;
    if (Dest->getUniquePredecessor() == T->getParent())
      return &*Dest->getFirstInsertionPt();
    if (Dest->isLandingPad()) {
      SmallVector<BasicBlock *, 2> New;
      SplitLandingPadPredecessors(Dest, {T->getParent()}, ".pleach", ".rest", New);
      for (BasicBlock *BB : New)
        HeadOf[BB] = To;
      return &*New[0]->getFirstInsertionPt();
    }
    BasicBlock *Between =
        SplitKnownCriticalEdge(T, Index, CriticalEdgeSplittingOptions().setMergeIdenticalEdges());
    if (!Between) {
      Failure = "an edge of its plan cannot be split";
      return nullptr;
    }
    return Between->getTerminator();
  }

  // The second return of a call begins another path.
  void resume(CallInst *Call, ArrayRef<PleachOp> Ops) {
    IRBuilder<> B(Call->getNextNode());
    Value *Again = B.CreateICmpNE(Call, ConstantInt::get(Call->getType(), 0));
    B.SetInsertPoint(SplitBlockAndInsertIfThen(Again, &*B.GetInsertPoint(), /*Unreachable=*/false));
    for (AllocaInst *Earlier : History)
      store(B, B.getInt64(0), Earlier);
    emit(B, Ops);
    // The runtime cleared the record when it counted the path that the jump ended.
    for (const PleachBlock &R : ArrayRef(Plan.Records, Plan.RecordCount))
      if (R.Block == ResumedBlock[Call])
        writeRecord(B, R.Ops.get().front(), true);
  }

  void callRuntime() {
    Type *Void = Type::getVoidTy(F.getContext());
    auto Declare = [&](const char *Name, ArrayRef<Type *> Args) {
      FunctionCallee Callee = M.getOrInsertFunction(Name, FunctionType::get(Void, Args, false));
      cast<Function>(Callee.getCallee())->setDoesNotThrow();
      return Callee;
    };
    for (CallInst *Call : Setjmps) {
      IRBuilder<> B(Call);
      // The end of the frame, which has the function's record. On AArch64 records may be beyond the frame address.
      Value *Frame = M.getTargetTriple().isAArch64()
                         ? B.CreateIntrinsic(Intrinsic::sponentry, {Ptr}, {})
                         : B.CreateIntrinsic(Intrinsic::frameaddress, {Ptr}, {B.getInt32(0)});
      B.CreateCall(Declare("__pleach_mark", {Ptr, Ptr}), {Call->getArgOperand(0), Frame});
    }
    for (CallInst *Call : Longjmps)
      IRBuilder<>(Call).CreateCall(Declare("__pleach_jump", {Ptr}), {Call->getArgOperand(0)});
    for (CallInst *Call : Endings)
      IRBuilder<>(Call).CreateCall(Declare("__pleach_ending", {}));
  }

  // Calls that may unwind out of the function get a landing pad that counts the recorded path.
  void unwindThrowing() {
    if (Throwing.empty() || F.doesNotThrow())
      return;
    if (!F.hasPersonalityFn()) {
      // The inliner requires the same personality in caller and callee.
      bool IsCxx = any_of(M.functions(), [](Function &G) {
        return G.getName().starts_with("_Z") || G.getName() == "__gxx_personality_v0";
      });
      F.setPersonalityFn(cast<Constant>(
          M.getOrInsertFunction(IsCxx ? "__gxx_personality_v0" : "__gcc_personality_v0",
                                FunctionType::get(I32, true))
              .getCallee()));
    }
    LLVMContext &C = F.getContext();
    BasicBlock *Pad = BasicBlock::Create(C, "pleach.unwind", &F);
    IRBuilder<> B(Pad);
    LandingPadInst *Landing = B.CreateLandingPad(StructType::get(Ptr, I32), 0);
    Landing->setCleanup(true);
    // By value, and with the tag inverted: AddressSanitizer would move a record whose address is taken, and a whole
    // record in registers might be spilled.
    auto Half = [&](unsigned I) {
      return B.CreateAlignedLoad(I32, B.CreateConstInBoundsGEP1_32(I32, Record, I), Align(4),
                                 /*isVolatile=*/true);
    };
    Value *Number = B.CreateZExt(Half(0), I64), *Tag = B.CreateZExt(B.CreateNot(Half(1)), I64);
    Value *Key = B.getInt64(0);
    if (Plan.Hashed)
      Key = B.CreateAlignedLoad(I64, B.CreateConstInBoundsGEP1_32(I32, Record, 2), Align(8),
                                /*isVolatile=*/true);
    clearRecord(B);
    FunctionCallee Abandon =
        M.getOrInsertFunction("__pleach_abandon", Type::getVoidTy(C), I64, I64, I64);
    cast<Function>(Abandon.getCallee())->setDoesNotThrow();
    CallInst *Call = B.CreateCall(Abandon, {Number, Tag, Key});
    if (DISubprogram *SP = F.getSubprogram())
      Call->setDebugLoc(DILocation::get(C, 0, 0, SP));
    B.CreateResume(Landing);
    for (CallInst *Thrower : Throwing)
      changeToInvokeAndSplitBasicBlock(Thrower, Pad);
  }
};

} // namespace

void pleachEmitCount(IRBuilderBase &B, Value *Slot, Value *Index, uint32_t Hashed, uint32_t Word,
                     Value *Step) {
  CallInst *Count = B.CreateIntrinsic(Intrinsic::instrprof_increment_step, {},
                                      {Slot, Index, B.getInt32(Hashed), B.getInt32(Word), Step});
  Count->setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
  Count->setDoesNotThrow();
  Count->addFnAttr(Attribute::WillReturn);
  Count->addFnAttr(Attribute::NoCallback);
  // Merged counts of different paths would need the paths' numbers in registers.
  Count->addFnAttr(Attribute::NoMerge);
}

extern "C" {

// Whether every edge with operations in a plan can be split; returns a reason if not.
const char *pleach_cannot_instrument(LLVMValueRef V, const PleachPlan *Plan) {
  Function *F = unwrap<Function>(V);
  SmallVector<BasicBlock *> Blocks;
  for (BasicBlock &BB : *F)
    Blocks.push_back(&BB);
  for (Instruction &I : instructions(*F)) {
    auto *Call = dyn_cast<CallBase>(&I);
    if (!Call || isa<IntrinsicInst>(Call) || !Call->hasFnAttr(Attribute::ReturnsTwice))
      continue;
    const uint32_t Kind = callKind(*Call, *Plan);
    if (!isa<CallInst>(Call) || (Kind != Setjmp && Kind != Vfork))
      return "it calls a function that returns twice, in a way that pleach does not know";
  }
  for (const PleachEdge &E : ArrayRef(Plan->Edges, Plan->EdgeCount)) {
    Instruction *T = Blocks[E.From]->getTerminator();
    BasicBlock *To = Blocks[E.To];
    if (To->getFirstInsertionPt() == To->end())
      return "it has funclet-style exception handling";
    bool Alone = To->getUniquePredecessor() == Blocks[E.From];
    if (isa<CallBrInst>(T) && !Alone)
      return "an asm goto jumps where other code does too";
    if (isa<IndirectBrInst>(T) && !Alone) {
      unsigned Indirect = 0;
      for (BasicBlock *Pred : predecessors(To))
        Indirect += isa<IndirectBrInst>(Pred->getTerminator());
      if (Indirect != 1 || To->isEHPad())
        return "several indirect branches have one target";
    }
  }
  return nullptr;
}

// Applies a plan. Returns a reason if the function does not match it, and leaves the function malformed.
const char *pleach_instrument(LLVMValueRef F, LLVMValueRef Slot, const PleachPlan *Plan) {
  return Instrumenter(*unwrap<Function>(F), unwrap(Slot), *Plan).run();
}

} // extern "C"
