package org.millrace.bench.run;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.bench.measure.Effort;
import org.millrace.bench.suite.Suite;
import org.millrace.bench.suite.Suites;
import picocli.CommandLine;

class OptionsTest {

    private static Options parse(String... arguments) {
        Options options = new Options();
        new CommandLine(options).parseArgs(arguments);
        return options;
    }

    @Test
    void withoutOptionsEverythingIsMeasuredQuickly() {
        Options options = parse();
        assertEquals(Effort.QUICK, options.effort());
        assertEquals(Suites.ALL, options.suites());
    }

    @Test
    void suitesAndForksAreChosen() {
        Options options = parse("--full", "--suite", "rings,fences", "--forks", "3");
        assertEquals(List.of("rings", "fences"), options.suites().stream().map(Suite::name).toList());
        assertEquals(3, options.effort().forks());
        assertEquals(3, options.effort().maxForks());
        assertTrue(options.effort().full());
    }

    @Test
    void everythingOfTheFullSetCanBeTriedHastily() {
        Effort hasty = Effort.SMOKE.ofFullSet();
        assertTrue(hasty.full());
        assertEquals(hasty, parse("--smoke", "--full").effort());
        assertEquals(hasty, parse("--full", "--smoke").effort());
    }

    @Test
    void whatIsWrongIsSaidInALine(@TempDir Path directory) throws IOException {
        Path broken = Files.writeString(directory.resolve("broken.json"), "{\"a\" 1}");
        Path file = Files.createFile(directory.resolve("file"));
        assertSaid(2, "--fast", "--fast");
        assertSaid(2, "fences", "--suite", "fence");
        assertSaid(2, "--out", "--out");
        assertSaid(2, "abc", "--forks", "abc");
        assertSaid(2, "--forks", "--forks", "0");
        assertSaid(2, "--smoke", "--quick", "--smoke");
        assertSaid(2, "mean nothing", "--smoke", "--save-baseline");
        assertSaid(1, file.toString(), "--out", file + "/result", "--smoke", "--suite", "rings");
        assertSaid(1, "broken.json", "render", broken.toString(), directory.toString());
        assertSaid(1, "none.json", "render", directory.resolve("none.json").toString(), directory.toString());
    }

    private static void assertSaid(int status, String what, String... arguments) {
        StringWriter said = new StringWriter();
        int ended = Main.commandLine().setErr(new PrintWriter(said)).execute(arguments);
        assertEquals(status, ended, said.toString());
        assertTrue(said.toString().contains(what), said.toString());
        assertEquals(1, said.toString().lines().count(), said.toString());
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
