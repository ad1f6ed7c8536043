// Shared by the shim's files.
#ifndef PLEACH_SHIM_H
#define PLEACH_SHIM_H

#include "llvm/IR/PassManager.h"

// What Rust hands back to the shim while one module runs.
struct PleachRun {
  llvm::ModuleAnalysisManager &MAM;
};

#endif
