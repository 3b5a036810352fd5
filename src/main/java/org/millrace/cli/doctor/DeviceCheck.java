package org.millrace.cli.doctor;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.cli.perf.SelfTest;
import org.millrace.config.Settings;

/** Whether a device does what it is for. */
final class DeviceCheck implements Check {

    private final String subject;
    private final Map<String, String> settings = new LinkedHashMap<>();

    /**
     * A check.
     *
     * @param subject  what people call the device
     * @param device   the device as {@code MILLRACE_DEVICE} names it
     * @param settings settings of the command line
     */
    DeviceCheck(String subject, String device, Map<String, String> settings) {
        this.subject = subject;
        this.settings.putAll(settings);
        this.settings.put(Settings.DEVICE.name(), device);
    }

    @Override
    public String subject() {
        return subject;
    }

    @Override
    public CheckResult find() {
        List<String> failures = SelfTest.run(settings);
        return failures.isEmpty() ? CheckResult.works("an all-reduce of two ranks gave what it must")
                : CheckResult.unusable(failures.getFirst(),
                        failures.subList(1, failures.size()).toArray(String[]::new));
    }
}
