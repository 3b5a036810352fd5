/*
 * The device's side of the benchmarks with a GPU. Each kernel has one thread, and each wait ends after a number of
 * cycles, even if the host does not answer. The PTX is checked in beside the Java class that loads it, in a version
 * that drivers for CUDA 11.5 and newer read. After a change:
 *
 *   nvcc -ptx -arch=compute_75 -o flags.ptx bench/src/main/cuda/flags.cu
 *   sed "s|^[.]version .*|.version 7.5|" flags.ptx >bench/src/main/resources/org/millrace/bench/gpu/flags.ptx
 */

typedef unsigned long long u64;

enum { SAMPLES = 2048 };
enum { DONE, LAST, STAMPS = 16 };

/* Bits of the argument "how" of post_steps. */
enum { FENCED = 1, STAMPED = 2 };

static __device__ u64 load(const u64 *word) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ void store(u64 *word, u64 value) { asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory"); }

/*
 * Posts steps as a sending kernel does: stores tail, then waits for the credit in head. With FENCED, a system-wide
 * fence before the store of tail orders the slot's data before it. result[DONE] is the number of credited steps, and is
 * stored last. With STAMPED, result[STAMPS + 2 i] is the clock before the store of tail for step i, and the next word
 * is the clock after the kernel saw head.
 */
extern "C" __global__ void post_steps(u64 *tail, const u64 *head, u64 first, u64 count, u64 patience, int how, u64 *result) {
    __shared__ u64 stamps[2 * SAMPLES];
    u64 done = 0;
    for (; done < count; done++) {
        u64 end = first + done + 1;
        u64 begin = clock64();
        if (how & FENCED) {
            __threadfence_system();
        }
        store(tail, end);
        u64 now = begin;
        while ((long long)(load(head) - end) < 0 && now - begin < patience) {
            now = clock64();
        }
        now = clock64();
        if (now - begin >= patience) {
            break;
        }
        if (done < SAMPLES) {
            stamps[2 * done] = begin;
            stamps[2 * done + 1] = now;
        }
    }
    for (u64 i = 0; how & STAMPED && i < 2 * done && i < 2 * SAMPLES; i++) {
        result[STAMPS + i] = stamps[i];
    }
    __threadfence_system();
    store(result + LAST, first + done);
    store(result + DONE, done);
}

/* Reads a word of host memory until it is told to stop, like a kernel that waits for head. */
extern "C" __global__ void poll_word(const u64 *word, const u64 *stop, u64 patience, u64 *result) {
    u64 begin = clock64();
    u64 sum = 0;
    u64 polls = 0;
    while (!load(stop) && (u64)clock64() - begin < patience) {
        for (int i = 0; i < 16; i++) {
            sum += load(word);
        }
        polls += 16;
    }
    result[STAMPS] = sum;
    __threadfence_system();
    store(result + LAST, polls);
    store(result + DONE, 1);
}
