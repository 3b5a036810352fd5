package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Output for users who request help, and for users who make mistakes. */
class UsageTest {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                    "| no command is given. Commands: run, perf, compare, doctor, gin, ps, top, why, dump, "
                            + "metrics, trace, record, replay, simulate, plugin, completion, man, help",
                    "plugin | no command is given. Commands: install",
                    "plugin install | Missing required parameter: 'DIR'",
                    "perff | there is no 'perff'; did you mean perf?",
                    "run -n 2 | Missing required parameter: 'COMMAND'",
                    "run -- x | Missing required option: '--ranks=RANKS'",
                    "run -n 0 -- x | a whole number from 1 to 256",
                    "run -n 1 -x 1A=2 -- x | -x: '1A' is no name of a variable",
                    "run -n 1 -x NOT_HERE -- x | -x NOT_HERE: there is no such variable here",
                    "run -n 1 --master-port 70000 -- x | --master-port: a number from 1 to 65535",
                    "run -n 1 -D MILLRACE_NET=pigeon -- x | MILLRACE_NET=pigeon is not usable",
                    "bogus | there is no 'bogus'; there are: run, perf, compare, doctor, gin, ps, top, why, dump, "
                            + "metrics, trace, record, replay, simulate, plugin, completion, man, help",
                    "plugin instal | there is no 'instal'; did you mean install?",
                    "help perff | there is no 'perff'; did you mean perf?",
                    "help plugin remove | there is no 'remove'; there are: install",
                    "perf all_reduce --jsn x | there is no option --jsn; did you mean --json?",
                    "perf --sizs 3 | there is no option --sizs",
                    "perf all_reduce x | nothing more is expected behind 'millrace perf' and what it needs: 'x'",
                    "top --interval 0 | --interval=0.0 is not usable; allowed: 0.05 to 3600 seconds",
                    "metrics --listen 9400 | --listen=9400 is not usable; allowed: an address of this host and a port",
                    "trace | Missing required option: '--out=FILE'",
                    "perf | Missing required parameter: 'COLLECTIVE': What to measure: all_reduce, all_gather",
                    "perf allreduce | COLLECTIVE: there is no 'allreduce'; did you mean all_reduce?",
                    "perf everything | there is no 'everything'; allowed: all_reduce, all_gather, reduce_scatter, "
                            + "broadcast, reduce, alltoall, gather, scatter, sendrecv",
                    "perf all_reduce -t doubl | --datatype: there is no 'doubl'; did you mean double?",
                    "perf all_reduce -t string | there is no 'string'; allowed: all, or one or more of int8",
                    "perf all_reduce -o minus | there is no 'minus'; allowed: all, or one or more of sum, prod, max, "
                            + "min, avg, mulsum",
                    "perf all_reduce -b 3X | '3X' is not usable; allowed: a number of bytes",
                    "perf all_reduce -b 16 -e 8 | the smallest size (-b 16) is larger than the largest (-e 8)",
                    "perf all_reduce -f 2 -i 8 | not by both", "perf all_reduce -f 1 | sizes must grow",
                    "perf all_reduce -i 0 | sizes must grow", "perf all_reduce -r 0 | a whole number from 1 to 256",
                    "perf all_reduce -r 100000 | a whole number from 1 to 256",
                    "perf all_reduce -n 0 | a whole number, 1 or more",
                    "perf all_reduce -c 2 | 1 (or true, yes, on) or 0",
                    "perf all_reduce --json /does/not/exist/x.json | the directory does not exist",
                    "perf all_reduce --json /tmp | /tmp is a directory; name a file",
                    "perf all_reduce -f 1.5 | '1.5' is not usable; allowed: a whole number",
                    "perf all_reduce -D FOO | -D FOO: expected NAME=VALUE",
                    "perf all_reduce -D MILLRACE_NET=pigeon | millrace: MILLRACE_NET=pigeon is not usable",
                    "compare pom.xml pom.xml | pom.xml cannot be compared: the text is not JSON from line 1 column 1 on",
                    "compare LICENSE | as many files of A as of B are needed, in turns; number of files: 1",
                    "compare src src | src cannot be compared: Is a directory",
                    "perf all_reduce --device mapped --channels x | a whole number from 1 to 64. It is: minimum",
                    "trace --out /tmp | --out: /tmp is a directory; name a file",
                    "dump --out /does/not/exist/x | the directory does not exist",
                    "record export src --out /does/not/exist/x | the directory does not exist",
                    "record export src --format svg | --format: 'svg' is not usable; allowed: CSV, CHROME",
                    "replay src --speed fast | --speed: 'fast' is not usable; allowed: a number",
                    "simulate src --ranks two | --ranks: 'two' is not usable; allowed: a whole number",
                    "perf all_reduce -w -1 | '-1' is not usable; allowed: a whole number, 0 or more",
                    "perf all_reduce --seed x | 'x' is not usable; allowed: a whole number of 64 bits",
                    "gin pong | 'pong' is not usable; allowed: put, signal, alltoall, flood",
                    "gin putt | 'putt' is not usable; did you mean put?",
                    "gin put --format v7 | 'v7' is not usable; allowed: V28, V29, V30_3, V30",
                    "gin put --contexts 100000 | a whole number from 1 to 256",
                    "gin put -r 10000 | a whole number from 1 to 256",
                    "gin put --net pigeon | --net pigeon is not usable; allowed: auto, shm, socket, ucx",
                    "perf all_reduce --deadline 30 | '30' is not usable; allowed: a time",
                    "perf all_reduce --device gpu | --device gpu: there is no such device; allowed: auto, or "
                            + "one of those found",
                    "perf all_reduce --device mapped --net pigeon | --net pigeon is not usable; allowed: "
                            + "auto, shm, socket, ucx",
                    "perf all_reduce --device mapped --channels 65 | --channels 65 is not usable",
                    "perf all_reduce --device mapped -D NCCL_BUFSIZE=1M | did you mean NCCL_BUFFSIZE?",
                    "perf all_reduce --device host -D NCCL_ALGO=star | NCCL_ALGO=star: there is no algorithm star",
                    "perf all_reduce --device host -D NCCL_PROTO=LL64 | NCCL_PROTO=LL64: there is no protocol ll64",
                    "perf all_reduce --device host -D MILLRACE_FAULT=flip:frame=3 | MILLRACE_FAULT: fault "
                            + "'flip:frame=3': 'bit=' is missing",
                    "gin put -D MILLRACE_FAULT=burn | MILLRACE_FAULT: fault 'burn': there is no fault 'burn'",
                    "perf all_reduce -D MILLRACE_NET | NAME=VALUE",})
    void whatCannotBeUnderstoodIsExplainedAndGivesStatus2(String arguments, String expected) {
        Run run = Run.of(arguments == null ? new String[0] : arguments.split(" "));
        assertEquals(2, run.status(), run.toString());
        assertTrue(run.err().contains(expected), run.toString());
        assertFalse(run.err().contains("\tat "), run.toString());
        assertEquals("", run.out(), run.toString());
        List<String> lines = run.err().lines().map(line -> line.replaceFirst("^millrace: ", "").split(";")[0]).toList();
        assertEquals(lines.stream().distinct().toList(), lines, "said once: " + run);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"record show /does/not/exist", "record stat pom.xml", "replay pom.xml",
                    "simulate /does/not/exist --ranks 2"})
    void aRecordingThatIsNotThereIsExplained(String arguments) {
        Run run = Run.of(arguments.split(" "));
        assertEquals(1, run.status(), run.toString());
        assertTrue(run.err().matches("millrace: there is no directory \\S+; MILLRACE_RECORD=DIR makes a recording\n"),
                run.toString());
    }

    @Test
    void helpIsACommandToo() {
        assertEquals(Run.of("perf", "--help"), Run.of("help", "perf"));
        assertEquals(Run.of("--help"), Run.of("help"));
        assertEquals(Run.of("plugin", "install", "--help"), Run.of("help", "plugin", "install"));
    }

    @Test
    void whatIsHiddenIsNeitherCompletedNorInTheManual() {
        Run completion = Run.of("completion");
        assertTrue(completion.out().contains("complete -F _complete_millrace -o default millrace "),
                completion.toString());
        Run manual = Run.of("man");
        assertTrue(manual.out().startsWith(".TH MILLRACE 1"), manual.toString());
        assertTrue(manual.out().contains("\n.SS \"millrace plugin install\"\n"), manual.toString());
        for (Run run : List.of(completion, manual)) {
            assertEquals(0, run.status(), run.toString());
            assertTrue(run.out().replace("\\-", "-").contains("--ranks-per-host"), run.toString());
            assertFalse(run.out().contains("worker"), run.toString());
        }
    }

    /** The completion script, loaded into a shell, completes a partial command. */
    @Test
    void bashCompletes(@TempDir Path directory) throws Exception {
        Path script = Files.writeString(directory.resolve("millrace"), Run.of("completion").out());
        Process bash = new ProcessBuilder("bash", "-c",
                "compopt() { :; }; source " + script
                        + "; COMP_WORDS=(millrace gin fl); COMP_CWORD=2; _complete_millrace; echo ${COMPREPLY[@]}")
                .redirectErrorStream(true)
                .start();
        assertEquals("flood\n", new String(bash.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
    }

    @Test
    @EnabledForJreRange(min = JRE.JAVA_24)
    void whereNativeAccessIsDeniedOneIsToldWhatToAdd() throws Exception {
        for (String command : List.of("doctor", "perf all_reduce")) {
            List<String> line = new ArrayList<>(ChildMain.builder(Main.class, command.split(" ")).command());
            line.remove("--enable-native-access=ALL-UNNAMED");
            line.add(1, "--illegal-native-access=deny");
            Process process = new ProcessBuilder(line).redirectErrorStream(true).start();
            String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertEquals(1, process.waitFor(), printed);
            assertEquals(1, printed.lines().count(), printed);
            assertTrue(printed.startsWith("millrace: native memory and libraries are not accessible to Millrace")
                    && printed.contains("--enable-native-access=ALL-UNNAMED"), printed);
        }
    }

    @Test
    void helpAndVersion() {
        Run help = Run.of("--help");
        assertEquals(0, help.status(), help.toString());
        assertTrue(help.out().contains("perf") && help.out().contains("doctor") && help.out().contains("Exit status"),
                help.toString());
        Run perf = Run.of("perf", "--help");
        assertEquals(0, perf.status(), perf.toString());
        assertTrue(perf.out().contains("-b, --minbytes") && perf.out().contains("all_reduce"), perf.toString());
        assertFalse(perf.out().contains("worker"), "hidden options: " + perf);
        Run version = Run.of("--version");
        assertEquals(0, version.status(), version.toString());
        assertTrue(version.out().startsWith("millrace ") && version.out().contains("Java " + Runtime.version()),
                version.toString());
    }
}
