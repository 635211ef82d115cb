#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <catch2/reporters/catch_reporter_streaming_base.hpp>
#include <ostream>
#include <sstream>
#include <string>

namespace {

/// Test Anything Protocol, one line a test case: `ok`, `not ok`, or `ok # SKIP reason`. Failed
/// assertions follow their case as diagnostics.
class CaseTapReporter : public Catch::StreamingReporterBase {
  public:
    using StreamingReporterBase::StreamingReporterBase;

    static std::string getDescription() { return "TAP, one line per test case"; }

    void testCaseStarting(const Catch::TestCaseInfo& info) override {
        StreamingReporterBase::testCaseStarting(info);
        diagnostics_.str("");
        skip_reason_.clear();
    }

    void assertionEnded(const Catch::AssertionStats& stats) override {
        const Catch::AssertionResult& result = stats.assertionResult;
        if (result.getResultType() == Catch::ResultWas::ExplicitSkip) {
            skip_reason_ = std::string(result.getMessage());
            return;
        }
        if (result.isOk())
            return;
        diagnostics_ << result.getSourceInfo() << ": " << result.getExpression();
        if (result.hasExpandedExpression())
            diagnostics_ << " is " << result.getExpandedExpression();
        if (result.hasMessage())
            diagnostics_ << ": " << result.getMessage();
        for (const Catch::MessageInfo& info : stats.infoMessages)
            diagnostics_ << "\n  with " << info.message;
        diagnostics_ << '\n';
    }

    void testCaseEnded(const Catch::TestCaseStats& stats) override {
        ++count_;
        const bool passed = stats.totals.assertions.allOk();
        // '#' would start a TAP directive inside the description.
        std::string name = stats.testInfo->name;
        for (char& c : name)
            if (c == '#')
                c = '_';
        m_stream << (passed ? "ok " : "not ok ") << count_ << " - " << name;
        if (passed && stats.totals.testCases.skipped != 0)
            m_stream << " # SKIP " << skip_reason_;
        m_stream << '\n';
        std::istringstream lines(diagnostics_.str());
        for (std::string line; std::getline(lines, line);)
            m_stream << "# " << line << '\n';
        m_stream.flush();
        StreamingReporterBase::testCaseEnded(stats);
    }

    void testRunEnded(const Catch::TestRunStats& stats) override {
        m_stream << "1.." << count_ << '\n';
        m_stream.flush();
        StreamingReporterBase::testRunEnded(stats);
    }

  private:
    std::size_t count_ = 0;
    std::ostringstream diagnostics_;
    std::string skip_reason_;
};

CATCH_REGISTER_REPORTER("case-tap", CaseTapReporter)

}  // namespace
