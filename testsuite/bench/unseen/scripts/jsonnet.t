// Services with their settings: objects that extend others, comprehensions and conditions.
local Base = {
  local me = self,
  name: error 'no name',
  port: 8000 + std.length(self.name),
  labels: { app: me.name, tier: 'back' },
  env+: [{ key: 'PORT', value: std.toString(me.port) }],
  assert self.port > 1000 : 'port',
};
local Cached = {
  local me = self,
  labels+: { cache: 'yes' },
  env+: [{ key: 'CACHE', value: '%05d of %s' % [me.port, me.name] }],
};
local Web(n) = Base {
  name: 'web-' + n,
  labels+: { tier: if n % 3 == 0 then 'front' else super.tier, number: n },
  limits:: { cpu: n * 0.25, memory: n * 16 },
  resources: self.limits { memory: super.memory + 'Mi', count: std.length(self) },
};
local services = [Web(n) + (if n % 2 == 0 then Cached else {}) for n in std.range(1, 130)];
local total(f) = std.foldl(function(sum, service) sum + f(service), services, 0);
{
  [service.name]: service { index:: 1, volumes: [{ path: '/v/%s/%d' % [service.name, i] } for i in std.range(1, 3)] }
  for service in services
} + {
  cpu: total(function(s) s.limits.cpu),
  ports:: [s.port for s in services if std.objectHas(s.labels, 'cache')],
  largest: std.foldl(std.max, self.ports, 0),
}
