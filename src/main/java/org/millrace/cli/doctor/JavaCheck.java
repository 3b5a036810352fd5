package org.millrace.cli.doctor;

/** The JVM, and whether it lets us call native functions. */
final class JavaCheck implements Check {

    @Override
    public String subject() {
        return "Java";
    }

    @Override
    public CheckResult find() {
        String java =
                Runtime.version() + ", " + System.getProperty("java.vendor") + ", " + System.getProperty("java.home");
        Module module = JavaCheck.class.getModule();
        if (!module.isNativeAccessEnabled()) {
            String name = module.isNamed() ? module.getName() : "ALL-UNNAMED";
            return CheckResult.unusable(java + "; native access is not granted",
                    "start Java with --enable-native-access=" + name + ", or run millrace.jar with java -jar");
        }
        return CheckResult.works(java);
    }
}
