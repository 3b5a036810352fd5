package org.millrace.cli.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.millrace.CommunicatorProvider;
import org.millrace.Millrace;

/** The implementations of communicators on the class path. */
final class ProvidersCheck implements Check {

    private final Map<String, String> settings;
    private final BooleanSupplier mayLoad;

    /**
     * A check.
     *
     * @param settings those of the command line
     * @param mayLoad  whether the libraries that providers load do no harm
     */
    ProvidersCheck(Map<String, String> settings, BooleanSupplier mayLoad) {
        this.settings = settings;
        this.mayLoad = mayLoad;
    }

    @Override
    public String subject() {
        return "devices";
    }

    @Override
    public CheckResult find() {
        List<String> advice = new ArrayList<>();
        List<CommunicatorProvider> providers = Millrace.providers(advice);
        List<String> names = providers.stream().map(CommunicatorProvider::device).sorted().toList();
        if (mayLoad.getAsBoolean()) {
            providers.forEach(provider -> provider.whyUnusable(settings)
                    .ifPresent(reason -> advice.add(provider.device() + " is not usable: " + reason)));
        } else {
            advice.add("which of them are usable was not tried, because a library is damaged");
        }
        String[] lines = advice.toArray(String[]::new);
        return names.isEmpty()
                ? CheckResult.missing(
                        "META-INF/services/" + CommunicatorProvider.class.getName() + " on the class path", lines)
                : CheckResult.works(String.join(", ", names), lines);
    }
}
