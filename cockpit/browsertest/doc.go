// Package browsertest tests the page of a cockpit in a headless Chromium, against the three
// processes of the quickstart. Run the tests with make cockpit-test. They require the build tag
// browser, and fail if Chromium is not installed.
package browsertest
