package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.config.Configuration;
import org.millrace.config.Settings.Kernels;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.plugin.gin.GinResources.GinSettings;
import org.millrace.plugin.host.CapturedLog;

class GinSettingsTest {

    private static GinSettings read(UnaryOperator<String> environment) {
        return GinSettings.of(Configuration.ofPlugin(environment));
    }

    @Test
    void whatIsNotSetIsOnForGpus() {
        GinSettings usual =
                new GinSettings(Kernels.GPU, true, true, Duration.ofNanos(150_000), PayloadCheck.OFF, List.of());
        assertEquals(usual, read(Map.<String, String>of()::get));
        assertEquals(usual, read(name -> ""));
    }

    @Test
    void whatIsUsableIsTakenWithoutAWord() {
        assertEquals(new GinSettings(Kernels.HOST, false, false, Duration.ofSeconds(1), PayloadCheck.OFF, List.of()),
                read(Map.of("MILLRACE_GIN", "host", "MILLRACE_GIN_DIRECT", "0", "MILLRACE_GIN_SHARED", "0",
                        "MILLRACE_GIN_COPY_KERNEL", "1000000")::get));
        assertEquals(Kernels.NONE, read(Map.of("MILLRACE_GIN", "0")::get).kernels());
        assertEquals(new GinSettings(Kernels.GPU, false, false, Duration.ofNanos(150_000), PayloadCheck.OFF, List.of()),
                read(Map.of("MILLRACE_LINK", "delay=1ms")::get), "what copies directly passes the link by");
        assertEquals(
                new GinSettings(Kernels.GPU, false, false, Duration.ofNanos(150_000), PayloadCheck.REPORT, List.of()),
                read(Map.of("MILLRACE_CHECK", "report")::get), "only frames have checksums");
        assertEquals(List.of(), read(name -> name.equals("MILLRACE_RECORD") ? null : "1").complaints());
    }

    @Test
    void putsAreNotRecordedAndAMessageSaysSo() {
        List<String> told = read(Map.of("MILLRACE_RECORD", "/tmp")::get).complaints();
        assertTrue(told.size() == 1 && told.getFirst().contains("MILLRACE_RECORD"), told::toString);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"MILLRACE_GIN|off|0 (no GIN), 1 or not set (for GPUs), host|GIN is there, for GPUs",
                    "MILLRACE_GIN_DIRECT|false|0 (off), 1 or not set (on)|it is on",
                    "MILLRACE_GIN_SHARED|2|0 (off), 1 or not set (on)|it is on",
                    "MILLRACE_GIN_COPY_KERNEL|50us|0 to 1000000 microseconds|it is 150",
                    "MILLRACE_GIN_COPY_KERNEL|-1|0 to 1000000 microseconds|it is 150",
                    "MILLRACE_GIN_COPY_KERNEL|1000001|0 to 1000000 microseconds|it is 1000000"})
    void whatIsNotUsableIsSaidOnceInTheLog(String name, String value, String allowed, String instead) {
        CapturedLog.begin();
        GinResources servers = new GinResources(Map.of(name, value)::get);
        servers.problem();
        servers.problem();
        List<String> said = CapturedLog.lines().stream().filter(line -> line.contains(name)).toList();
        assertEquals(1, said.size(), said.toString());
        assertTrue(said.getFirst().contains(name + "=" + value + " is not usable; allowed: " + allowed)
                && said.getFirst().endsWith("Here " + instead), said.toString());
    }
}
