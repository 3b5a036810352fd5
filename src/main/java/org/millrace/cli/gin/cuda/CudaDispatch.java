package org.millrace.cli.gin.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.millrace.MillraceException;
import org.millrace.agent.Waiting;
import org.millrace.cli.launch.RankWorker;
import org.millrace.cuda.CudaEvent;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.LaunchShape;
import org.millrace.gpu.GpuGinRank;

/**
 * Batches of tokens to the ranks of their experts and back, as one rank on its GPU. A batch is a few kernels, one
 * behind the other; they compare every token where it comes and where it comes back.
 */
final class CudaDispatch {

    /** Those of {@code gin.cu}: for what is put and for meetings, and for tokens on their way out and back. */
    static final int SIGNALS = 4;
    /** Tokens that came to experts, and that came back, otherwise than they should. */
    private static final int WRONG_BYTES = 2 * Long.BYTES;
    private static final LaunchShape BLOCKS = LaunchShape.of(16, 256);
    private static final LaunchShape ONE_WARP = LaunchShape.of(1, 32);
    /** Batches before the time is taken. */
    private static final int WARMUP = 2;

    private final CudaGinPlan plan;
    private final CudaGinPlan.Tokens tokens;
    private final int rank;
    private final GpuGinRank member;
    private final GinKernels kernels;
    private final CudaStream stream;
    private final GpuGinRank.GpuWindow window;
    private final MemorySegment exchange = Arena.ofAuto().allocate(GinKernels.EXCHANGE);
    private final long wrongAt;
    private long batch;

    CudaDispatch(CudaGinPlan plan, int rank, GpuGinRank member, GinKernels kernels, CudaStream stream, int contexts) {
        this.plan = plan;
        this.tokens = plan.tokens();
        this.rank = rank;
        this.member = member;
        this.kernels = kernels;
        this.stream = stream;
        long hosts = plan.ranks() / tokens.ranksPerHost();
        wrongAt = (1 + 2 * hosts + 2L * plan.ranks()) * tokens.batch() * tokens.words() * Long.BYTES;
        window = member.window(wrongAt + WRONG_BYTES);
        stream.fill(window.memory().segment(), (byte) 0);
        long[] words = {window.window().address(), tokens.seed(), 0, tokens.batch(), tokens.experts(), tokens.words(),
                contexts, tokens.direct() ? 1 : 0};
        MemorySegment.copy(words, 0, exchange, ValueLayout.JAVA_LONG, 0, words.length);
    }

    void run(RankWorker.Reporter reporter, Duration deadline) {
        int batches = plan.cases().getFirst().iterations();
        meet();
        int before = Math.min(WARMUP, batches - 1);
        for (int i = 0; i < before; i++) {
            batch();
        }
        try (CudaEvent begin = CudaEvent.timing(member.device()); CudaEvent end = CudaEvent.timing(member.device())) {
            begin.record(stream);
            for (int i = before; i < batches; i++) {
                batch();
                await(deadline);
            }
            end.record(stream);
            await(deadline);
            reporter.tell(new GinEvent.Measured(rank, 0, end.millisSince(begin) * 1e6 / (batches - before), wrong()));
        }
    }

    private void batch() {
        exchange.setAtIndex(ValueLayout.JAVA_LONG, 2, batch++);
        kernels.step("ginTokensOut", BLOCKS, exchange);
        if (!tokens.direct()) {
            kernels.waitingStep("ginTokensForward", BLOCKS, exchange);
        }
        meet(); // what was stored in neighbours' windows is there
        kernels.waitingStep("ginTokensExpert", BLOCKS, exchange);
        meet();
        if (!tokens.direct()) {
            kernels.step("ginTokensReturn", BLOCKS, exchange);
        }
        kernels.waitingStep("ginTokensIn", BLOCKS, exchange);
        meet(); // nobody writes the next batch where another still reads
    }

    private void meet() {
        kernels.step("ginMeet", ONE_WARP, exchange);
    }

    private void await(Duration deadline) {
        boolean ended = Waiting.until(() -> {
            kernels.throwIfLate();
            member.throwIfFailed();
            return stream.query();
        }, deadline);
        if (!ended) {
            throw new MillraceException("rank " + rank + ": batch " + (batch - 1) + " has not come to its end after "
                    + deadline.toSeconds() + " s: another rank did not come to a barrier, or a flush does not complete;"
                    + " NCCL_DEBUG=INFO says what NCCL does");
        }
        kernels.throwIfLate();
    }

    private long wrong() {
        MemorySegment counts = kernels.pinned(member.device(), WRONG_BYTES);
        stream.copy(counts, window.memory().slice(wrongAt, WRONG_BYTES));
        stream.synchronize(Duration.ofSeconds(10));
        return counts.get(ValueLayout.JAVA_LONG, 0) + counts.get(ValueLayout.JAVA_LONG, Long.BYTES);
    }
}
