/* sim/simgrid/engine.cpp: the module longhaul_simgrid.so, which makes the calls of sim/scheduler/engine.h in SimGrid.
 * It is in C++ because SimGrid's C interface lacks what we need: asynchronous flows between hosts, callbacks, and a
 * platform that is not read from XML.
 *
 * The folder sim/simgrid/ is the module through which simulations call SimGrid.
 *
 * There are no actors and no hosts: everything happens in callbacks of the engine's own loop. The engine asks each of
 * its models for its next date and jumps to the nearest; two models are ours, timers and flows. Flows share SimGrid's
 * own max-min solver: a link is one of its constraints, a flow is an action with a variable in the constraints of its
 * links. SimGrid's network model does the same below its activities, hosts and routes; those would cost more than the
 * solver, because a list of all activities is searched whenever one ends.
 *
 * Written for SimGrid 3.32, guarded for the names of later versions. */
#include "sim/scheduler/engine.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/NetZone.hpp>
#include <simgrid/version.h>
#include <string>
#include <string_view>
#include <vector>

namespace simgrid::kernel::lmm
{

/* The part of SimGrid's solver that we call. SimGrid installs no header of it, so the linker checks only the names. */
class System
{
  public:
    static System *build(std::string_view solver_name, bool selective_update);
    Constraint *constraint_new(resource::Resource *id, double bound);
    Variable *variable_new(resource::Action *id, double sharing_penalty, double bound,
                           size_t number_of_constraints);
    void expand(Constraint *constraint, Variable *variable, double weight, bool force_creation);
};

} // namespace simgrid::kernel::lmm

namespace s4u = simgrid::s4u;
namespace lmm = simgrid::kernel::lmm;
namespace resource = simgrid::kernel::resource;

namespace
{

constexpr double parts_per_byte = ENGINE_PARTS_PER_BYTE;

/* Events less than this many seconds apart count as simultaneous. With SimGrid's default, 1 ns, merged events always
 * end early: an op of 1 us came out 1.6e-11 s short. */
constexpr double precision_s = 1e-12;

engine_done_fn done_fn;
engine_before_advance_fn ahead_fn;
void *done_context;

const double *bytes_per_s;                  /* [links] */
std::vector<lmm::Constraint *> constraints; /* [links] null until a flow crosses the link */

/* ---- flows ---- */

class Flow : public resource::Action
{
  public:
    const int64_t tag;

    Flow(resource::Model *model, double parts, int64_t flow_tag)
        : Action(model, parts, false), tag(flow_tag)
    {
    }
    /* Is called when another flow has changed this flow's rate; subtracts what moved at the old rate. */
    void update_remains_lazy(double now) override
    {
        if (get_remains_no_update() > 0)
            update_remains(get_last_value() * (now - get_last_update()));
        if (get_remains_no_update() <= 0) {
            finish(State::FINISHED);
            get_model()->get_action_heap().remove(this);
        }
        set_last_update();
        set_last_value(get_rate());
    }
};

class FlowModel : public resource::Model
{
  public:
    FlowModel() : Model("longhaul_flows")
    {
        set_update_algorithm(UpdateAlgo::LAZY);
        set_maxmin_system(lmm::System::build("maxmin", true));
    }
    void start(const uint32_t *link, uint32_t count, double parts, int64_t tag)
    {
        auto *flow = new Flow(this, parts, tag);
        auto *variable = get_maxmin_system()->variable_new(flow, 1.0, -1.0, count);
        flow->set_variable(variable);
        flow->set_last_update();
        /* no link is named twice, so expand() need not search for it */
        for (uint32_t i = 0; i < count; i++)
            get_maxmin_system()->expand(constraint_of(link[i]), variable, 1.0, true);
    }
    void update_actions_state(double now, double) override
    {
        auto &heap = get_action_heap();
        while (!heap.empty() && std::fabs(heap.top_date() - now) < precision_s)
            heap.pop()->finish(resource::Action::State::FINISHED);
    }
    /* Returns the tag of a flow that has ended, and removes the flow; -1 if none has. */
    int64_t take_ended()
    {
        auto *flow = static_cast<Flow *>(extract_done_action());
        if (flow == nullptr)
            return -1;
        int64_t tag = flow->tag;
        flow->unref();
        return tag;
    }

  private:
    lmm::Constraint *constraint_of(uint32_t link)
    {
        lmm::Constraint *&constraint = constraints.at(link);
        if (constraint == nullptr)
            constraint =
                get_maxmin_system()->constraint_new(nullptr, bytes_per_s[link] * parts_per_byte);
        return constraint;
    }
};

std::shared_ptr<FlowModel> flows;

/* ---- timers ---- */

class TimerModel : public simgrid::kernel::resource::Model
{
  public:
    std::multimap<double, int64_t> tags; /* by date; those of one date in the order they were set */
    std::vector<int64_t> fired;

    TimerModel() : Model("longhaul_timers")
    {
    }
    double next_occurring_event(double now) override
    {
        if (ahead_fn != nullptr) {
            /* The engine itself asks the flows for their next date, too. That costs little: a model that was just asked
             * answers at once. */
            double delay = flows->next_occurring_event(now);
            double next = delay < 0 ? HUGE_VAL : now + delay;
            while (
                ahead_fn(done_context, tags.empty() ? next : std::min(next, tags.begin()->first)))
                ;
        }
        return tags.empty() ? -1.0 : std::max(0.0, tags.begin()->first - now);
    }
    /* The tags are handed out later, when the engine has left its models. */
    void update_actions_state(double now, double) override
    {
        for (; !tags.empty() && tags.begin()->first <= now; tags.erase(tags.begin()))
            fired.push_back(tags.begin()->second);
    }
};

/* ---- the engine ---- */

s4u::Engine *engine;
std::shared_ptr<TimerModel> timers;
std::vector<int64_t> batch;
std::string fault; /* the first exception's words */

/* Calls `body`, unless an exception was caught before; keeps the words of the first one in `fault`. */
template <typename F> void guarded(F body) noexcept
{
    if (!fault.empty())
        return;
    try {
        body();
    } catch (const std::exception &e) {
        fault = e.what();
    } catch (...) {
        fault = "an exception without words";
    }
}

/* Calls done_fn for each timer that has fired and each flow that has ended at the current date, timers first, until
 * none is left: each call may start others. */
void call_done_functions_at_date()
{
    while (!timers->fired.empty()) {
        batch.swap(timers->fired);
        for (int64_t tag : batch)
            done_fn(done_context, tag);
        batch.clear();
    }
    for (int64_t tag = flows->take_ended(); tag >= 0; tag = flows->take_ended())
        done_fn(done_context, tag);
}

void configure()
{
#if SIMGRID_VERSION < 33300
    s4u::Engine::set_config("surf/precision", precision_s);
#else
    s4u::Engine::set_config("precision/timing", precision_s);
#endif
#if SIMGRID_VERSION <                                                                              \
    33900 /* older versions run only with a platform, which may be empty; later ones make one */
    s4u::create_star_zone("root");
#endif
    flows = std::make_shared<FlowModel>();
    timers = std::make_shared<TimerModel>();
    engine->add_model(flows);
    engine->add_model(timers);
    s4u::Engine::on_time_advance_cb([](double) { call_done_functions_at_date(); });
}

void init_engine(engine_done_fn done, engine_before_advance_fn ahead, void *context,
                 const double *link_bytes_per_s, uint32_t links)
{
    static char name[] = "longhaul", quiet[] = "--log=root.thres:error";
    static char *arguments[] = {name, quiet, nullptr};
    static int count = 2;
    done_fn = done;
    ahead_fn = ahead;
    done_context = context;
    bytes_per_s = link_bytes_per_s;
    guarded([=] {
        constraints.resize(links);
        engine = new s4u::Engine(&count, arguments);
        configure();
    });
}

double now_s()
{
    return s4u::Engine::get_clock();
}

void set_timer(double date_s, int64_t tag)
{
    guarded([=] { timers->tags.emplace(date_s, tag); });
}

void start_flow(const uint32_t *link, uint32_t count, double bytes, int64_t tag)
{
    guarded([=] {
        double parts = std::max(1.0, std::floor(bytes * parts_per_byte + 0.5));
        flows->start(link, count, parts, tag);
    });
}

const char *run()
{
    guarded([] { engine->run(); });
    return fault.empty() ? nullptr : fault.c_str();
}

void version(int *major, int *minor, int *patch)
{
    sg_version_get(major, minor, patch);
}

} // namespace

extern "C" const struct engine_calls longhaul_simgrid;
const struct engine_calls longhaul_simgrid = {init_engine, now_s, set_timer,
                                              start_flow,  run,   version};
