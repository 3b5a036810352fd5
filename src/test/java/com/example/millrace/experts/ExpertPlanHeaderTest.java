package com.example.millrace.experts;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.StringJoiner;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.CCompiler;

/**
 * The C header for kernels on GPUs computes the same plan and layout as the classes for the emulated device. The test
 * compares the two with each other.
 */
class ExpertPlanHeaderTest {

    private static final Path HEADER = Path.of("bench", "gpu", "expert_plan.h");
    private static final ExpertPlan PLAN = new ExpertPlan(5, 3, 7, 40, 2, 4, 0xfedc_ba98_7654_3210L);
    private static final long BATCH = 11;
    private static final long INDEX = (1L << 33) + 5;

    private static final String PROGRAM = """
            #define __host__
            #define __device__
            #include "expert_plan.h"
            #include <stdio.h>
            int main() {
              Plan plan = {5, 3, 7, 40, 2, 4, 0xfedcba9876543210ull};
              Layout layout = {plan};
              for (int rank = 0; rank < plan.ranks; rank++) {
                for (int token = 0; token < plan.tokens; token++) {
                  for (int to = 0; to < plan.ranks; to++)
                    printf("%d", plan.goesTo(11, rank, token, to));
                  printf(" %016lx %016lx\\n", plan.word(11, rank, token, 3),
                         Plan::expert(rank, plan.word(11, rank, token, 0)));
                }
                for (int channel = 0; channel < plan.channels; channel++)
                  printf("%d %d %zu %zu %zu %zu %u %u\\n", plan.firstToken(channel),
                         plan.countTokens(11, rank, channel, 2), layout.countsTo(rank), layout.countsFrom(rank),
                         layout.sendSlot(channel, rank, (1ul << 33) + 5), layout.receiveSlot(channel, rank, 3),
                         layout.headSignal(channel, rank), layout.tailSignal(channel, rank));
              }
              printf("%zu %zu %u\\n", layout.windowBytes(), layout.countsBytes(), layout.signals());
            }
            """;

    private static String expected() {
        ExpertLayout layout = new ExpertLayout(PLAN);
        StringJoiner lines = new StringJoiner("\n", "", "\n");
        for (int rank = 0; rank < PLAN.ranks(); rank++) {
            for (int token = 0; token < PLAN.tokens(); token++) {
                StringBuilder line = new StringBuilder();
                for (int to = 0; to < PLAN.ranks(); to++) {
                    line.append(PLAN.goesTo(BATCH, rank, token, to) ? 1 : 0);
                }
                lines.add(line + " %016x %016x".formatted(PLAN.word(BATCH, rank, token, 3),
                        ExpertPlan.expert(rank, PLAN.word(BATCH, rank, token, 0))));
            }
            for (int channel = 0; channel < PLAN.channels(); channel++) {
                lines.add("%d %d %d %d %d %d %d %d".formatted(PLAN.firstToken(channel),
                        PLAN.countTokens(BATCH, rank, channel, 2), layout.countsTo(rank), layout.countsFrom(rank),
                        layout.sendSlot(channel, rank, INDEX), layout.receiveSlot(channel, rank, 3),
                        layout.headSignal(channel, rank), layout.tailSignal(channel, rank)));
            }
        }
        lines.add("%d %d %d".formatted(layout.windowBytes(), layout.countsBytes(), layout.signals()));
        return lines.toString();
    }

    @Test
    void theHeaderSaysWhatJavaSays(@TempDir Path directory) throws Exception {
        Path source = Files.writeString(directory.resolve("plan.cc"), PROGRAM);
        Path program = directory.resolve("plan");
        CCompiler.cPlusPlus(List.of("-std=c++17", "-Wall", "-Werror", "-I", HEADER.getParent().toString(),
                source.toString(), "-o", program.toString()));
        assertEquals(expected(), CCompiler.run(List.of(program.toString())));
    }
}
