/*
 * Gives an unmodified libnccl a CUDA runtime on CPU threads. libnccl contains NVIDIA's runtime as local functions. The
 * loader finds each function whose name begins with "cuda" in libnccl's symbol table. It writes a jump to the function
 * of the same name in cuda.cpp at each entry. A function that cuda.cpp lacks fails with its name. Of NCCL's own symbols
 * the loader reads the table ncclDevFuncRowToId and the names of the kernels, for the interpreter.
 *
 * MILLRACE_NCCL names the library. The loader is preloaded or linked; it is idle without that variable.
 */
#include "launch.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <utility>

namespace {

constexpr int SUPPORTED_VERSION = 23007; // NCCL 2.30.7
constexpr int NOT_SUPPORTED = 801;       // cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED
constexpr size_t FUNCTIONS = 512;

const char *absentNames[FUNCTIONS];
int absentCount;

std::map<const void *, const char *> &functionNames() {
  static auto *names = new std::map<const void *, const char *>;
  return *names;
}

template <size_t I> int absent() {
  fprintf(stderr, "libnccl without a GPU: %s is not implemented\n", absentNames[I]);
  return NOT_SUPPORTED;
}

template <size_t... I> int (*absentFunction(size_t index, std::index_sequence<I...>))() {
  static int (*const functions[])() = {absent<I>...};
  return functions[index];
}

/** Writes an absolute jump to the target at the entry of a function. */
void writeJump(char *entry, const void *target) {
#if defined(__x86_64__)
  unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; // mov rax, target; jmp rax
  memcpy(jump + 2, &target, sizeof target);
#elif defined(__aarch64__)
  uint32_t jump[4] = {0x58000050, 0xd61f0200}; // ldr x16, #8; br x16
  memcpy(jump + 2, &target, sizeof target);
#else
#error "no jump for this processor"
#endif
  memcpy(entry, jump, sizeof jump);
  __builtin___clear_cache(entry, entry + sizeof jump);
}

/** Makes the library's code writable or executable. */
void protect(const link_map *library, const char *file, int protection) {
  auto *header = reinterpret_cast<const ElfW(Ehdr) *>(file);
  auto *parts = reinterpret_cast<const ElfW(Phdr) *>(file + header->e_phoff);
  for (int i = 0; i < header->e_phnum; i++) {
    if (parts[i].p_type != PT_LOAD || !(parts[i].p_flags & PF_X)) continue;
    uintptr_t begin = (library->l_addr + parts[i].p_vaddr) & ~uintptr_t(getpagesize() - 1);
    size_t size = library->l_addr + parts[i].p_vaddr + parts[i].p_memsz - begin;
    if (mprotect(reinterpret_cast<void *>(begin), size, protection) != 0) unsupported("mprotect failed: %m");
  }
}

/** Replaces the functions of one library whose file is mapped at the given address. */
void replace(const link_map *library, const char *file) {
  auto *header = reinterpret_cast<const ElfW(Ehdr) *>(file);
  auto *sections = reinterpret_cast<const ElfW(Shdr) *>(file + header->e_shoff);
  const ElfW(Shdr) *table = nullptr;
  for (int i = 0; i < header->e_shnum; i++)
    if (sections[i].sh_type == SHT_SYMTAB) table = sections + i;
  if (table == nullptr) unsupported("%s has no symbol table", library->l_name);
  auto *symbols = reinterpret_cast<const ElfW(Sym) *>(file + table->sh_offset);
  const char *names = file + sections[table->sh_link].sh_offset;
  protect(library, file, PROT_READ | PROT_WRITE | PROT_EXEC);
  bool functionTable = false;
  for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
    const ElfW(Sym) &symbol = symbols[i];
    if (symbol.st_shndx == SHN_UNDEF) continue;
    const char *name = names + symbol.st_name;
    char *address = reinterpret_cast<char *>(library->l_addr + symbol.st_value);
    if (strcmp(name, "ncclDevFuncRowToId") == 0) {
      setFunctionTable(reinterpret_cast<const int *>(address), symbol.st_size / sizeof(int));
      functionTable = true;
    }
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    if (strstr(name, "Kernel") != nullptr || strstr(name, "oneRankReduce") != nullptr)
      functionNames()[address] = strdup(name);
    // NCCL's own fallbacks for old runtimes are shorter than a jump, and the runtime's functions are longer.
    if (strncmp(name, "cuda", 4) != 0 || symbol.st_size < 16) continue;
    writeJump(address, cudaFunction(name));
  }
  if (!functionTable) unsupported("%s has no ncclDevFuncRowToId", library->l_name);
  protect(library, file, PROT_READ | PROT_EXEC);
}

__attribute__((constructor)) void load() {
  const char *path = getenv("MILLRACE_NCCL");
  if (path == nullptr) return;
  void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) unsupported("%s", dlerror());
  int version = 0;
  auto getVersion = reinterpret_cast<int (*)(int *)>(dlsym(handle, "ncclGetVersion"));
  if (getVersion == nullptr || getVersion(&version) != 0 || version != SUPPORTED_VERSION)
    unsupported("%s has NCCL's version code %d; only %d is supported", path, version, SUPPORTED_VERSION);
  link_map *library = nullptr;
  dlinfo(handle, RTLD_DI_LINKMAP, &library);
  int fd = open(library->l_name, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) unsupported("cannot open %s", library->l_name);
  void *file = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (file == MAP_FAILED) unsupported("cannot map %s", library->l_name);
  replace(library, static_cast<const char *>(file));
  munmap(file, status.st_size);
  close(fd);
}

} // namespace

void unsupported(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char reason[1000]; // The line is written at once, because the ranks write to one file.
  vsnprintf(reason, sizeof reason, format, arguments);
  fprintf(stderr, "libnccl without a GPU: %s\n", reason);
  va_end(arguments);
  _exit(1);
}

const char *functionName(const void *function) {
  auto found = functionNames().find(function);
  if (found == functionNames().end()) unsupported("no kernel at %p", function);
  return found->second;
}

void *cudaFunction(const char *name) {
  static void *self = dlopen("libcuda-on-cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (void *function = dlsym(self, name)) return function;
  if (absentCount == FUNCTIONS) unsupported("more than %zu functions are not implemented", FUNCTIONS);
  absentNames[absentCount] = strdup(name);
  return reinterpret_cast<void *>(absentFunction(absentCount++, std::make_index_sequence<FUNCTIONS>()));
}
