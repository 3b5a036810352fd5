package org.millrace.bench.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.millrace.bench.comparator.CompiledLibrary;
import org.millrace.bench.measure.Effort;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/**
 * Shows the machine code of a line's loop: HotSpot's C2 code of a method, and the C compiler's code of a function.
 * Requires objdump, but no hsdis.
 */
@Command(
        name = "disassemble",
        mixinStandardHelpOptions = true,
        description = "What C2 made of a line's Java and the C compiler of its C (x86-64, needs objdump).")
final class DisassembleCommand implements Callable<Integer> {

    private static final Pattern BYTES =
            Pattern.compile("^ {2}0x[0-9a-f]{16}: ((?:[0-9a-f]{2,} ?\\|? ?)+)$", Pattern.MULTILINE);
    private static final int DEADLINE_SECONDS = 120;
    /** Effort that makes the JIT compile the loop. Its figures are not meaningful. */
    private static final Effort EFFORT = new Effort(20_000_000L, 500_000L, 3, 1, 1, 0, false);

    @Parameters(
            arity = "4..5",
            paramLabel = "ARGUMENT",
            description = {"SUITE VARIANT ID", "PACKAGE.CLASS::METHOD", "and perhaps a function of C's"})
    private List<String> arguments;

    @Override
    public Integer call() throws IOException {
        Path scratch = Files.createTempDirectory("millrace-bench");
        try {
            Path library = CompiledLibrary.compile(scratch);
            String printed = javaCode(arguments, library, scratch);
            int begin = printed.lastIndexOf("[MachCode]");
            if (begin < 0) {
                System.err.println("C2 did not compile " + arguments.get(3) + " while " + arguments.get(0) + ":"
                        + arguments.get(1) + "/" + arguments.get(2) + " ran");
                return 1;
            }
            Path code = scratch.resolve("code.bin");
            Files.write(code, bytes(printed.substring(begin, Math.max(begin, printed.indexOf("[/MachCode]", begin)))));
            System.out.println("C2: " + arguments.get(3));
            System.out.println(output(List.of("objdump", "-D", "-b", "binary", "-m", "i386:x86-64",
                    "--no-show-raw-insn", code.toString())));
            if (arguments.size() > 4 && library != null) {
                System.out.println(CompiledLibrary.version() + ": " + arguments.get(4));
                System.out.println(output(List.of("objdump", "-d", "--no-show-raw-insn",
                        "--disassemble=" + arguments.get(4), library.toString())));
            }
            return 0;
        } finally {
            try (Stream<Path> files = Files.walk(scratch)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        }
    }

    private static String javaCode(List<String> arguments, Path library, Path scratch) throws IOException {
        List<String> command = new ArrayList<>(ChildProcess.java(library == null ? Child.NONE : library.toString()));
        command.addAll(1, List.of("-XX:+UnlockDiagnosticVMOptions", "-XX:-TieredCompilation",
                "-XX:CompileCommand=quiet", "-XX:CompileCommand=print," + arguments.get(3)));
        command.addAll(List.of("child", arguments.get(0), arguments.get(1), EFFORT.text(),
                scratch.resolve("result.json").toString(), arguments.get(2)));
        return output(command);
    }

    /**
     * Returns the bytes of a listing that was created without hsdis. These are groups of hexadecimal digits after
     * addresses, up to the exception handlers.
     */
    static byte[] bytes(String listing) {
        String main =
                listing.contains("[Exception Handler]") ? listing.substring(0, listing.indexOf("[Exception Handler]"))
                        : listing;
        StringBuilder digits = new StringBuilder();
        Matcher lines = BYTES.matcher(main.replaceAll(" +\n", "\n"));
        while (lines.find()) {
            digits.append(lines.group(1).replaceAll("[ |]", ""));
        }
        return HexFormat.of().parseHex(digits);
    }

    private static String output(List<String> command) throws IOException {
        Path output = Files.createTempFile("millrace-bench", ".txt");
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile()).start();
            if (!process.waitFor(DEADLINE_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new IOException(command.getFirst() + " was not ready after " + DEADLINE_SECONDS + " s");
            }
            return Files.readString(output);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        } finally {
            Files.delete(output);
        }
    }
}
