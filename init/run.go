package supervisor

import (
	"log/slog"

	"github.com/fosterinit/foster/exec"
)

// Run runs the plan in this process, leaves the report and the termination
// message, and returns the exit code. The error is a *exec.StartError where the
// only command never ran.
func (plan *Plan) Run(log *slog.Logger, paint Paint) (code int, err error) {
	if len(plan.commands) > 1 || plan.line == nil || plan.line.supervised() {
		return plan.supervise(log, paint), nil
	}
	c := plan.line
	opt := exec.Options{Log: log, PassFDs: plan.Config.PassFDs}
	if fd := plan.Config.Report.FD; fd > 0 {
		opt.KeepFDs = []int{fd}
	}
	r, err := exec.Keep(&c.Spec, opt)
	if err == nil && c.Command.SuccessExitCodes.Has(r.ExitCode) {
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
	return r.ExitCode, err
}
