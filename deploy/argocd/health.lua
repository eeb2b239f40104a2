-- Computes the health of objects of kaos.tools for Argo CD. Works for every kind, and uses no library.
local hs = { status = "Progressing", message = "waiting for the operator" }
local status = obj.status
if obj.metadata.deletionTimestamp ~= nil then
  hs.message = "being deleted"
  return hs
end
-- In a new object, observedGeneration is -1. After an edit, the status still has the earlier generation.
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return hs
end
local ready = nil
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Stalled" and condition.status == "True" then
    hs.status = "Degraded"
    hs.message = condition.message
    return hs
  end
  if condition.type == "Reconciling" and condition.status == "True" then
    hs.message = condition.message
    return hs
  end
  if condition.type == "Ready" then
    ready = condition
  end
end
-- A PolicyRevision has no condition Ready.
if ready ~= nil then
  hs.message = ready.message
  if ready.status == "True" then
    hs.status = "Healthy"
  end
else
  hs.status = "Healthy"
  hs.message = status.message
end
return hs
