package org.millrace.cli.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.cli.Run;
import org.millrace.cli.base.Json;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.cuda.NativeBuild;

@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class DoctorCommandTest {

    @TempDir
    private Path directory;

    @Test
    void everySubjectAndEverySettingIsThere() {
        Run run = Run.of("doctor", "-D", "NCCL_BUFFSIZE=8M", "-D", "MILLRACE_SECRET=swordfish");
        for (String subject : List.of("Java", "kernel", "cores", "memory", "shared memory", "limits", "driver",
                "CUDA runtime", "GPUs", "NCCL", "device cuda", "device host")) {
            assertTrue(run.out().lines().anyMatch(line -> line.startsWith(subject + " ")), subject + " in " + run);
        }
        for (Setting<?> setting : Settings.all()) {
            assertTrue(run.out().contains("  " + setting.name() + " "), setting.name() + " in " + run);
        }
        for (String variable : List.of("MILLRACE_JAVA_HOME", "MILLRACE_JAR", "MILLRACE_JAVA_OPTS", "MILLRACE_GIN",
                "MILLRACE_UNPACK")) {
            assertTrue(run.out().contains("  " + variable + " "), variable + " in " + run);
        }
        List<String> lines = run.out().lines().filter(line -> line.matches("  (MILLRACE|NCCL)_.*")).toList();
        assertEquals(1,
                lines.stream()
                        .map(line -> line.replaceFirst("^ +\\S+ +", "").length() - line.length())
                        .distinct()
                        .count(),
                "one column: " + run);
        assertEquals(List.of(),
                run.out()
                        .lines()
                        .filter(line -> line.length() > 80 && line.strip().contains(" "))
                        .filter(line -> line.strip().replaceFirst("^.*  +", "").contains(" "))
                        .toList(),
                "wrapped: " + run);
        assertTrue(run.out().matches("(?s).*NCCL_BUFFSIZE +8M +argument NCCL_BUFFSIZE.*"), run.toString());
        assertFalse(run.toString().contains("swordfish"), run.toString());
        assertEquals("", run.err(), run.toString());
    }

    /** The output is for programs: numbers are JSON numbers, an unset value is null, and a secret is not shown. */
    @Test
    void jsonSaysTheSameWithTypes() {
        Run run = Run.of("doctor", "--json", "-D", "NCCL_BUFFSIZE=8M", "-D", "MILLRACE_SECRET=swordfish", "-D",
                "MILLRACE_STALL_DEADLINE=1500ms");
        assertEquals(0, run.status(), run.toString());
        Map<?, ?> document = (Map<?, ?>) Json.read(run.out());
        assertEquals(true, document.get("usable"));
        assertTrue(((List<?>) document.get("checks")).stream()
                .map(check -> ((Map<?, ?>) check))
                .anyMatch(check -> check.get("subject").equals("device host") && check.get("state").equals("works")),
                run.toString());
        Map<?, ?> settings = (Map<?, ?>) document.get("settings");
        assertEquals(Map.of("value", 8L << 20, "text", "8M", "origin", "argument NCCL_BUFFSIZE"),
                settings.get("NCCL_BUFFSIZE"));
        assertEquals(1.5, ((Map<?, ?>) settings.get("MILLRACE_STALL_DEADLINE")).get("value"));
        assertEquals(false, ((Map<?, ?>) settings.get("MILLRACE_TLS")).get("value"));
        assertNull(((Map<?, ?>) settings.get("MILLRACE_THREADS")).get("value"));
        assertFalse(run.toString().contains("swordfish"), run.toString());
    }

    private Finding doctor(Path nccl) {
        Run run = Run.of("doctor", "-D", "MILLRACE_NCCL_LIBRARY=" + nccl);
        assertEquals("", run.err(), run.toString());
        assertFalse(run.out().contains("\tat ") || run.out().contains("Exception"), run.toString());
        String wrapped = run.out()
                .lines()
                .dropWhile(line -> !line.startsWith("NCCL "))
                .takeWhile(line -> line.startsWith("NCCL ") || line.startsWith(" "))
                .map(String::strip)
                .collect(Collectors.joining(" "));
        return new Finding(wrapped, run);
    }

    /** Joined output lines about one subject. */
    private record Finding(String text, Run run) {
        void says(String expected) {
            assertTrue(text.contains(expected), run.toString());
        }
    }

    @Test
    void aBrokenLibraryIsSaidToBeBroken() throws Exception {
        Path text = Files.writeString(directory.resolve("libnccl.so.2"), "I am no library\n");
        Finding broken = doctor(text);
        broken.says("UNUSABLE");
        broken.says(text.toString());
        doctor(directory.resolve("nothing")).says("there is no such file");
    }

    /**
     * A process that loads a truncated library is killed when it reads beyond the file's end. Doctor must therefore
     * load the library in a child process.
     */
    @Test
    void aTruncatedLibraryEndsAnotherProcessThanThisOne() throws Exception {
        byte[] whole = Files.readAllBytes(NativeBuild.stub("nccl.c", "libnccl.so.2"));
        Path half = Files.write(directory.resolve("libnccl.so.2"), Arrays.copyOf(whole, 5000));
        Finding damaged = doctor(half);
        damaged.says("UNUSABLE");
        assertEquals(1, damaged.run.out().lines().filter(line -> line.contains(" UNUSABLE ")).count(),
                "the libraries after it are tried, too: " + damaged.run);
    }

    @Test
    void unusableSettingsAreExplainedAndGiveStatus1() {
        Run run = Run.of("doctor", "-D", "NCCL_BUFFSIZE=5");
        assertEquals(1, run.status(), run.toString());
        assertTrue(run.out().matches("(?s).*settings +UNUSABLE +NCCL_BUFFSIZE=5 is not\\s+usable; allowed: .*"),
                run.toString());
        assertEquals(run.out().indexOf("NCCL_BUFFSIZE=5"), run.out().lastIndexOf("NCCL_BUFFSIZE=5"),
                "said once: " + run);
    }
}
