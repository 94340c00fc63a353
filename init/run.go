package supervisor

import (
	"log/slog"
	"path/filepath"

	"github.com/fosterinit/foster/exec"
)

// Run runs the plan in this process, leaves the report and the termination
// message, and returns the result, whose ExitCode is the process's. The error
// is a *exec.StartError where the command never ran.
func (plan *Plan) Run(log *slog.Logger) (*exec.Result, error) {
	if path := plan.Config.TerminationPath; path != "" {
		if abs, err := filepath.Abs(path); err == nil {
			plan.Config.TerminationPath = abs
		}
	}
	opt := exec.Options{Log: log, PassFDs: plan.Config.PassFDs}
	if fd := plan.Config.Report.FD; fd > 0 {
		opt.KeepFDs = []int{fd}
	}
	r, err := exec.Keep(&plan.Spec, opt)
	if plan.Config.SuccessExitCodes.Has(r.ExitCode) {
		r.ExitCode = 0
		if r.Reason == exec.Error {
			r.Reason = exec.Completed
		}
	}
	if err := plan.writeReport(r); err != nil {
		log.Warn("report not written", "error", err)
	}
	if r.ExitCode != 0 {
		if err := WriteTermination(plan.Config.TerminationPath, sentence(r, err)); err != nil {
			log.Warn("termination message not written", "error", err)
		}
	}
	return r, err
}
