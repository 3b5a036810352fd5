/* The part of the CUDA runtime that Millrace calls. */
#ifndef MILLRACE_CUDA_RUNTIME_H
#define MILLRACE_CUDA_RUNTIME_H

#include "cuda/device.h"
#include "cuda/error.h"
#include "cuda/graph.h"
#include "cuda/kernel.h"
#include "cuda/memory.h"
#include "cuda/stream.h"

#endif
