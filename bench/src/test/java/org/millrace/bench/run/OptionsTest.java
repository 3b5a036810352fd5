package org.millrace.bench.run;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.millrace.bench.measure.Effort;
import org.millrace.bench.suite.Suite;
import org.millrace.bench.suite.Suites;

class OptionsTest {

    @Test
    void withoutOptionsEverythingIsMeasuredQuickly() {
        Options options = Options.parse(List.of());
        assertEquals(Effort.QUICK, options.effort());
        assertEquals(Suites.ALL, options.suites());
    }

    @Test
    void suitesAndForksAreChosen() {
        Options options = Options.parse(List.of("--full", "--suite", "rings,fences", "--forks", "3"));
        assertEquals(List.of("rings", "fences"), options.suites().stream().map(Suite::name).toList());
        assertEquals(3, options.effort().forks());
        assertEquals(3, options.effort().maxForks());
        assertTrue(options.effort().full());
    }

    @Test
    void everythingOfTheFullSetCanBeTriedHastily() {
        Effort hasty = Effort.SMOKE.ofFullSet();
        assertTrue(hasty.full());
        assertEquals(hasty, Options.parse(List.of("--smoke", "--full")).effort());
        assertEquals(hasty, Options.parse(List.of("--full", "--smoke")).effort());
    }

    @Test
    void whatIsWrongIsNamed() {
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Options.parse(List.of("--fast"))).getMessage()
                .contains("--fast"));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Options.parse(List.of("--suite", "fence")))
                .getMessage()
                .contains("fences"));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Options.parse(List.of("--out"))).getMessage()
                .contains("--out"));
        assertNull(Options.parse(List.of("--help")));
    }

    @Test
    void machineCodeIsReadFromAListingWithoutDisassembler() {
        byte[] code = DisassembleCommand.bytes("""
                [Verified Entry Point]
                  # {method} {0x00007f2da444d458} 'run' '(J)J' in 'X'
                  0x00007f2dac4d9d80: ;   {runtime_call os::breakpoint()}
                  0x00007f2dac4d9d80: e8eb 63fa | 1266\s

                  0x00007f2dac4d9db4: 49ba\s
                [Exception Handler]
                  0x00007f2dac4d9e00: ffff\s
                """);
        assertArrayEquals(new byte[] {(byte) 0xe8, (byte) 0xeb, 0x63, (byte) 0xfa, 0x12, 0x66, 0x49, (byte) 0xba},
                code);
    }

    @Test
    void theMachineKindIsAFileName() {
        assertTrue(Environment.kind().matches("[a-z0-9-]+"), Environment.kind());
    }
}
